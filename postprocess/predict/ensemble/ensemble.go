// Package ensemble is a predictor made of several: each looks at every image, and what they find becomes one list.
package ensemble

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/fuse"
)

// Ensemble asks all its predictors. The exported fields are set before Open.
//
// Its labels are those of the first predictor; the others may number the same ones in another way. Boxes cost no allocation from the second
// request of a slot on.
type Ensemble struct {
	// Predictors run at the same time where their devices can. Closing the Ensemble closes them.
	Predictors []predict.Predictor
	// Fuser says how; each slot works with a copy.
	Fuser fuse.Fuser
	// Decoding is what the predictors were opened for, but for Below(Decoding): its Threshold and Limit hold for what comes out.
	Decoding predict.Decoding

	model     predict.Model
	tuned     atomic.Pointer[predict.Decoding]
	slots     []slot
	exclusive bool
	labels    [][]int // class of the ensemble by predictor and its class; nil where they are the same
}

var _ predict.Predictor = (*Ensemble)(nil)

// slot is one request's place.
type slot struct {
	busy     bool
	fuser    fuse.Fuser
	decoding predict.Decoding
	below    []*predict.BatchResult
	looks    [][]postprocess.Detection
	result   predict.BatchResult
}

// MemberDecoding is the decoding of predictors whose detections are fused: an object that one of them saw well needs the others' weak detections to keep
// its score.
func MemberDecoding(d predict.Decoding) predict.Decoding {
	d.MinScore = min(d.MinScore, max(d.MinScore/4, postprocess.EvaluationMinScore))
	return d
}

// Open checks that the predictors fit each other. An error leaves them open.
func (e *Ensemble) Open() error {
	if len(e.Predictors) == 0 {
		return errors.New("ensemble of no network")
	}
	if err := e.Fuser.Open(len(e.Predictors)); err != nil {
		return err
	}
	e.model = e.Predictors[0].Model()
	if task := e.model.Recognised.Task; task.Maps() {
		return fmt.Errorf("model %s gives a map (%s), which nothing fuses: leave the other networks away", e.model.Path, task)
	}
	e.exclusive = ExclusiveClasses(&e.model)
	slots := e.Predictors[0].Slots()
	var paths []string
	for i, p := range e.Predictors {
		m := p.Model()
		if m.Recognised.Task != e.model.Recognised.Task {
			return fmt.Errorf("model %s is for %s, %s is for %s: they cannot look together", e.model.Path, e.model.Recognised.Task, m.Path,
				m.Recognised.Task)
		}
		classes, err := e.match(&m)
		if err != nil {
			return err
		}
		e.labels = append(e.labels, classes)
		paths = append(paths, m.Path)
		e.model.MaxBatch, slots = min(e.model.MaxBatch, m.MaxBatch), min(slots, e.Predictors[i].Slots())
	}
	e.model.Path = strings.Join(paths, " + ")
	e.tuned.Store(&e.Decoding)
	e.slots = make([]slot, slots)
	for i := range e.slots {
		s := &e.slots[i]
		s.below, s.looks = make([]*predict.BatchResult, len(e.Predictors)), make([][]postprocess.Detection, len(e.Predictors))
		s.result.Results = make([]predict.Result, 0, e.model.MaxBatch)
		s.fuser = e.Fuser
		if err := s.fuser.Open(len(e.Predictors)); err != nil {
			return err
		}
	}
	return nil
}

// match finds the ensemble's class of each of a model's; nil when they are the same.
func (e *Ensemble) match(m *predict.Model) ([]int, error) {
	own, first := m.Metadata.Labels, e.model.Metadata.Labels
	if len(own) == 0 || len(first) == 0 || slices.Equal(own, first) {
		return nil, nil
	}
	classes := make([]int, len(own))
	for class, label := range own {
		if classes[class] = slices.Index(first, label); classes[class] < 0 {
			return nil, fmt.Errorf("model %s finds %q, which %s has no label for (begin with the network that knows all labels)", m.Path, label,
				e.model.Path)
		}
	}
	return classes, nil
}

// Model implements predict.Predictor.
func (e *Ensemble) Model() predict.Model { return e.model }

// Unwrap gives what looks together.
func (e *Ensemble) Unwrap() []predict.Predictor { return e.Predictors }

// Alloc implements predict.Predictor: the memory is the first predictor's.
func (e *Ensemble) Alloc(size int) (*engine.Buffer, error) { return e.Predictors[0].Alloc(size) }

// Slots implements predict.Predictor.
func (e *Ensemble) Slots() int { return len(e.slots) }

// Tune implements predict.Predictor. A layout holds for every network.
func (e *Ensemble) Tune(d predict.Decoding) error {
	below := MemberDecoding(d)
	for i, p := range e.Predictors {
		if err := p.Tune(below); err != nil {
			was := MemberDecoding(*e.tuned.Load())
			for _, changed := range e.Predictors[:i] {
				err = errors.Join(err, changed.Tune(was))
			}
			return err
		}
	}
	e.tuned.Store(&d)
	return nil
}

func (e *Ensemble) refuse(op string, kind error, format string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: e.model.Backend, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// Submit implements predict.Predictor.
func (e *Ensemble) Submit(number int, images []engine.Image) error {
	switch {
	case number < 0 || number >= len(e.slots):
		return e.refuse("submit", engine.ErrShape, "slot %d, there are slots 0 to %d", number, len(e.slots)-1)
	case e.slots[number].busy:
		return e.refuse("submit", nil, "slot %d has a request in flight, wait for it first", number)
	case len(images) < 1 || len(images) > e.model.MaxBatch:
		return e.refuse("submit", engine.ErrShape, "%d images, 1 to %d fit", len(images), e.model.MaxBatch)
	}
	for i, p := range e.Predictors {
		if err := p.Submit(number, images); err != nil {
			for _, started := range e.Predictors[:i] { // so that the images' memory is free
				_, failed := started.Wait(number)
				err = errors.Join(err, failed)
			}
			return err
		}
	}
	s := &e.slots[number]
	s.busy, s.decoding = true, *e.tuned.Load()
	s.result.Results = s.result.Results[:len(images)]
	return nil
}

// Wait implements predict.Predictor. The result's Timing is from the first submission to the last end, and the sum of the work between.
func (e *Ensemble) Wait(number int) (*predict.BatchResult, error) {
	if number < 0 || number >= len(e.slots) || !e.slots[number].busy {
		return nil, e.refuse("wait", nil, "slot %d has no request in flight, submit one first", number)
	}
	s := &e.slots[number]
	s.busy = false
	var errs []error
	for i, p := range e.Predictors {
		var err error
		if s.below[i], err = p.Wait(number); err != nil {
			errs = append(errs, err)
		}
	}
	if errs != nil {
		return nil, errors.Join(errs...)
	}
	e.sum(s)
	for i := range s.result.Results {
		e.fuse(s, i)
	}
	return &s.result, nil
}

// sum adds up what the requests below took.
func (e *Ensemble) sum(s *slot) {
	s.result.Timing, s.result.Decoding, s.result.Contradiction = s.below[0].Timing, s.below[0].Decoding, s.below[0].Contradiction
	to := &s.result.Timing
	for _, below := range s.below[1:] {
		to.Submitted, to.Done = min(to.Submitted, below.Timing.Submitted), max(to.Done, below.Timing.Done)
		to.Preprocess += below.Timing.Preprocess
		to.Inference += below.Timing.Inference
		to.Filter += below.Timing.Filter
		s.result.Decoding += below.Decoding
		s.result.Contradiction = cmp.Or(s.result.Contradiction, below.Contradiction)
	}
}

// fuse makes one list of what was found on an image.
func (e *Ensemble) fuse(s *slot, img int) {
	at := &s.result.Results[img]
	at.Detections, at.Stats, at.Err = at.Detections[:0], head.Stats{}, nil
	seen := 0
	for i, below := range s.below {
		of := &below.Results[img]
		at.Err = cmp.Or(at.Err, of.Err)
		at.Stats.Add(&of.Stats)
		seen += len(of.Detections)
		if classes := e.labels[i]; classes != nil {
			for k := range of.Detections { // they are this slot's until its next request
				if class := of.Detections[k].Class; class < len(classes) {
					of.Detections[k].Class = classes[class]
				}
			}
		}
		s.looks[i] = of.Detections
	}
	if at.Err != nil {
		return
	}
	at.Detections = ApplyLimits(s.fuser.Fuse(at.Detections, s.looks), &s.decoding, e.exclusive)
	at.Stats.Suppressed += seen - len(at.Detections)
}

// ExclusiveClasses reports whether an image is of one of the model's classes only, as far as its file tells.
func ExclusiveClasses(m *predict.Model) bool {
	return m.Recognised.Task == engine.Classify && m.Metadata.Activation != engine.Sigmoid
}

// ApplyLimits takes away what decoding would not have given: what is under its threshold, and what is over its limit. Of classes that exclude each
// other the best ones stay, whatever they score, where decoding is to give them always. The detections are sorted.
func ApplyLimits(detections []postprocess.Detection, d *predict.Decoding, exclusive bool) []postprocess.Detection {
	if exclusive && d.TopAlways {
		return detections[:min(len(detections), cmp.Or(d.TopK, head.DefaultTopK))]
	}
	for i := range detections {
		if detections[i].Score < d.MinScore {
			detections = detections[:i]
			break
		}
	}
	return detections[:min(len(detections), cmp.Or(d.Limit, head.DefaultLimit))]
}

// Close implements predict.Predictor.
func (e *Ensemble) Close() error {
	var errs []error
	for _, p := range e.Predictors {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
