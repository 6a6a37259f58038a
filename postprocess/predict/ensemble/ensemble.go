// Package ensemble fuses the detections of several views of an image: those of several networks (Ensemble), and those of one network on the
// image as it is, mirrored and scaled (Augmented, test-time augmentation). Both are predictors made of predictors.
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
)

// Ensemble runs several predictors on every image and fuses their detections. Set the exported fields before Open.
//
// Its labels are those of the first predictor; the others may number the same labels differently. Boxes need no allocation from the second
// request of a slot on.
type Ensemble struct {
	// Predictors run concurrently where their devices allow it. Close closes them.
	Predictors []predict.Predictor
	// Fuser holds the settings of fusion; each slot uses a copy.
	Fuser Fuser
	// Decoding applies to the fused detections; the predictors were opened with MemberDecoding of it.
	Decoding predict.Decoding

	model     predict.Model
	tuned     atomic.Pointer[predict.Decoding]
	slots     []slot
	exclusive bool
	labels    [][]int // by predictor and its class: the class of the ensemble; nil where they are the same
}

var _ predict.Predictor = (*Ensemble)(nil)

// slot holds one request.
type slot struct {
	busy     bool
	fuser    Fuser
	decoding predict.Decoding
	members  []*predict.BatchResult
	views    [][]postprocess.Detection
	result   predict.BatchResult
}

// MemberDecoding returns the decoding of predictors whose detections are fused, with a lower minimum score: an object that one of them
// detects with confidence needs the weak detections of the others to keep its score.
func MemberDecoding(d predict.Decoding) predict.Decoding {
	d.MinScore = min(d.MinScore, max(d.MinScore/4, postprocess.EvaluationMinScore))
	return d
}

// Open checks that the predictors are compatible. An error leaves them open.
func (e *Ensemble) Open() error {
	if len(e.Predictors) == 0 {
		return errors.New("ensemble of no network")
	}
	if err := e.Fuser.Open(len(e.Predictors)); err != nil {
		return err
	}
	e.model = e.Predictors[0].Model()
	if task := e.model.Recognised.Task; task.Maps() {
		return fmt.Errorf("model %s outputs a map (%s), which cannot be fused (use it without an ensemble)", e.model.Path, task)
	}
	e.exclusive = exclusiveClasses(&e.model)
	slots := e.Predictors[0].Slots()
	var paths []string
	for _, p := range e.Predictors {
		m := p.Model()
		if m.Recognised.Task != e.model.Recognised.Task {
			return fmt.Errorf("model %s is for %s and %s for %s (an ensemble needs one task)", e.model.Path, e.model.Recognised.Task, m.Path,
				m.Recognised.Task)
		}
		classes, err := e.match(&m)
		if err != nil {
			return err
		}
		e.labels = append(e.labels, classes)
		paths = append(paths, m.Path)
		e.model.MaxBatch = min(e.model.MaxBatch, m.MaxBatch)
		slots = min(slots, p.Slots())
	}
	e.model.Path = strings.Join(paths, " + ")
	e.tuned.Store(&e.Decoding)
	e.slots = make([]slot, slots)
	for i := range e.slots {
		s := &e.slots[i]
		s.members = make([]*predict.BatchResult, len(e.Predictors))
		s.views = make([][]postprocess.Detection, len(e.Predictors))
		s.result.Results = make([]predict.Result, 0, e.model.MaxBatch)
		s.fuser = e.Fuser
		if err := s.fuser.Open(len(e.Predictors)); err != nil {
			return err
		}
	}
	return nil
}

// match returns the ensemble's class for each class of a model; nil when they are the same.
func (e *Ensemble) match(m *predict.Model) ([]int, error) {
	own, first := m.Metadata.Labels, e.model.Metadata.Labels
	if len(own) == 0 || len(first) == 0 || slices.Equal(own, first) {
		return nil, nil
	}
	classes := make([]int, len(own))
	for class, label := range own {
		classes[class] = slices.Index(first, label)
		if classes[class] < 0 {
			return nil, fmt.Errorf("model %s detects %q, for which %s has no label (name the network with all labels first)", m.Path, label,
				e.model.Path)
		}
	}
	return classes, nil
}

// Model implements predict.Predictor.
func (e *Ensemble) Model() predict.Model { return e.model }

// Unwrap returns the predictors.
func (e *Ensemble) Unwrap() []predict.Predictor { return e.Predictors }

// Alloc implements predict.Predictor with memory of the first predictor.
func (e *Ensemble) Alloc(size int) (*engine.Buffer, error) { return e.Predictors[0].Alloc(size) }

// Slots implements predict.Predictor.
func (e *Ensemble) Slots() int { return len(e.slots) }

// Tune implements predict.Predictor. A layout applies to every network.
func (e *Ensemble) Tune(d predict.Decoding) error {
	decoding := MemberDecoding(d)
	for i, p := range e.Predictors {
		if err := p.Tune(decoding); err != nil {
			before := MemberDecoding(*e.tuned.Load())
			for _, changed := range e.Predictors[:i] {
				err = errors.Join(err, changed.Tune(before))
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
	s.busy = true
	s.decoding = *e.tuned.Load()
	s.result.Results = s.result.Results[:len(images)]
	return nil
}

// Wait implements predict.Predictor. Timing spans the first submission to the last end, and sums the work between.
func (e *Ensemble) Wait(number int) (*predict.BatchResult, error) {
	if number < 0 || number >= len(e.slots) || !e.slots[number].busy {
		return nil, e.refuse("wait", nil, "slot %d has no request in flight, submit one first", number)
	}
	s := &e.slots[number]
	s.busy = false
	var errs []error
	for i, p := range e.Predictors {
		var err error
		s.members[i], err = p.Wait(number)
		if err != nil {
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

// sum adds up the times of the predictors' requests.
func (e *Ensemble) sum(s *slot) {
	s.result.Timing = s.members[0].Timing
	s.result.Decoding = s.members[0].Decoding
	s.result.Contradiction = s.members[0].Contradiction
	to := &s.result.Timing
	for _, member := range s.members[1:] {
		to.Submitted = min(to.Submitted, member.Timing.Submitted)
		to.Done = max(to.Done, member.Timing.Done)
		to.Preprocess += member.Timing.Preprocess
		to.Inference += member.Timing.Inference
		to.Filter += member.Timing.Filter
		s.result.Decoding += member.Decoding
		s.result.Contradiction = cmp.Or(s.result.Contradiction, member.Contradiction)
	}
}

// fuse fuses the detections of an image.
func (e *Ensemble) fuse(s *slot, img int) {
	at := &s.result.Results[img]
	at.Detections = at.Detections[:0]
	at.Stats = head.Stats{}
	at.Err = nil
	total := 0
	for i, member := range s.members {
		of := &member.Results[img]
		at.Err = cmp.Or(at.Err, of.Err)
		at.Stats.Add(&of.Stats)
		total += len(of.Detections)
		if classes := e.labels[i]; classes != nil {
			for k := range of.Detections { // they belong to this slot until its next request
				if class := of.Detections[k].Class; class < len(classes) {
					of.Detections[k].Class = classes[class]
				}
			}
		}
		s.views[i] = of.Detections
	}
	if at.Err != nil {
		return
	}
	at.Detections = applyLimits(s.fuser.Fuse(at.Detections, s.views), &s.decoding, e.exclusive, &at.Stats)
	at.Stats.Suppressed += total - len(at.Detections)
}

// exclusiveClasses reports whether the model is a classifier whose classes exclude each other, as far as its file specifies.
func exclusiveClasses(m *predict.Model) bool {
	return m.Recognised.Task == engine.Classify && m.Metadata.Activation != engine.Sigmoid
}

// applyLimits cuts sorted detections to those that decoding would return: at or above its minimum score, and at most its limit. With
// TopAlways the best exclusive classes stay whatever their scores.
func applyLimits(detections []postprocess.Detection, d *predict.Decoding, exclusive bool, stats *head.Stats) []postprocess.Detection {
	if exclusive && d.TopAlways {
		return detections[:min(len(detections), cmp.Or(d.TopK, head.DefaultTopK))]
	}
	for i := range detections {
		if detections[i].Score < d.MinScore {
			detections = detections[:i]
			break
		}
	}
	limit := cmp.Or(d.Limit, head.DefaultLimit)
	if len(detections) <= limit {
		return detections
	}
	stats.Cut = max(stats.Cut, detections[limit].Score)
	return detections[:limit]
}

// Close implements predict.Predictor.
func (e *Ensemble) Close() error {
	var errs []error
	for _, p := range e.Predictors {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
