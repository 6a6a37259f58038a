// Package augment is a predictor made of a predictor, which sees every image as it is, mirrored and smaller, and whose detections become
// one list: test-time augmentation.
package augment

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
	"github.com/edge-infer/edge-infer/postprocess/predict/fuse"
)

// View is one way of seeing an image.
type View struct {
	Flip bool // left to right
	// Scale is how large the image appears, from MinScale to 1, which 0 stands for: there is grey around a smaller one.
	Scale float64
}

// MinScale is the smallest image.
const MinScale = 0.25

// Validate finds what is wrong with a look.
func (l View) Validate() error {
	if l.Scale != 0 && !(l.Scale >= MinScale && l.Scale <= 1) {
		return fmt.Errorf("scale %v, must be %v to 1 (tiles make images larger)", l.Scale, MinScale)
	}
	return nil
}

// ParseView reads a look: flip, scale=0.83, or both joined by +.
func ParseView(text string) (look View, err error) {
	for part := range strings.SplitSeq(text, "+") {
		scale, scaled := strings.CutPrefix(part, "scale=")
		switch {
		case part == "flip" && !look.Flip:
			look.Flip = true
		case scaled && look.Scale == 0:
			if look.Scale, err = strconv.ParseFloat(scale, 64); err != nil || look.Scale == 0 {
				return look, fmt.Errorf("scale %q is no number from %v to 1", scale, MinScale)
			}
		default:
			return look, fmt.Errorf("%q must be flip, scale=0.83 or flip+scale=0.83", text)
		}
	}
	return look, look.Validate()
}

// Augmented shows a predictor every image in several ways. The exported fields are set before Open.
//
// It has one slot, because an image's looks fill all slots of the predictor below, and takes as many images a request as that.
type Augmented struct {
	// Predictor is closed with the Augmented; nothing else may submit to it meanwhile.
	predict.Predictor
	// Views come beside the image as it is.
	Views []View
	// Fuser says how what they find is put together; its first weight is that of the image as it is.
	Fuser fuse.Fuser
	// Decoding is what the predictor was opened for, but for ensemble.Below(Decoding): its Threshold and Limit hold for what comes out.
	Decoding predict.Decoding

	tuned atomic.Pointer[predict.Decoding]

	// Of whoever calls Submit and Wait.
	busy      bool
	batch     int
	exclusive bool
	decoding  predict.Decoding
	relay     predict.Batcher
	take      func(number int, seen *predict.Result)
	images    []engine.Image // all looks of an image, then those of the next one
	copies    predict.ImageBuffers
	given     []engine.Image
	seen      [][]postprocess.Detection // by look, of the image that is being taken
	result    predict.BatchResult
}

var _ predict.Predictor = (*Augmented)(nil)

// Open checks the settings. An error leaves the predictor below open.
func (a *Augmented) Open() error {
	for _, look := range a.Views {
		if err := look.Validate(); err != nil {
			return err
		}
	}
	model := a.Model()
	if model.Recognised.Task.Maps() {
		return fmt.Errorf("model %s gives a map (%s), which nothing fuses: leave the other looks away", model.Path, model.Recognised.Task)
	}
	a.exclusive = ensemble.ExclusiveClasses(&model)
	if err := a.Fuser.Open(1 + len(a.Views)); err != nil {
		return err
	}
	a.batch = a.Model().MaxBatch
	a.relay.Predictor, a.take = a.Predictor, a.collect
	a.tuned.Store(&a.Decoding)
	a.seen = make([][]postprocess.Detection, 1+len(a.Views))
	a.result.Results = make([]predict.Result, 0, a.batch)
	return nil
}

// Unwrap gives what the looks are shown to.
func (a *Augmented) Unwrap() []predict.Predictor { return []predict.Predictor{a.Predictor} }

// Slots implements predict.Predictor.
func (a *Augmented) Slots() int { return 1 }

// Tune implements predict.Predictor.
func (a *Augmented) Tune(d predict.Decoding) error {
	err := a.Predictor.Tune(ensemble.MemberDecoding(d))
	if err == nil {
		a.tuned.Store(&d)
	}
	return err
}

func (a *Augmented) refuse(op string, kind error, format string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: a.Model().Backend, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// Submit implements predict.Predictor. It starts the first looks; Wait goes on with the others.
func (a *Augmented) Submit(slot int, images []engine.Image) error {
	switch {
	case slot != 0:
		return a.refuse("submit", engine.ErrShape, "slot %d, there is slot 0 alone", slot)
	case a.busy:
		return a.refuse("submit", nil, "slot 0 has a request in flight, wait for it first")
	case len(images) < 1 || len(images) > a.batch:
		return a.refuse("submit", engine.ErrShape, "%d images, 1 to %d fit", len(images), a.batch)
	}
	a.images, a.given = a.images[:0], append(a.given[:0], images...)
	a.result.Results = a.result.Results[:len(images)]
	for i := range images {
		at := &a.result.Results[i]
		at.Detections, at.Stats, at.Err = at.Detections[:0], head.Stats{}, nil
		a.images = append(a.images, images[i])
		for k, look := range a.Views {
			image, err := a.draw(i*len(a.Views)+k, look, &images[i])
			if err != nil {
				at.Err, image = cmp.Or(at.Err, err), engine.Image{} // which is refused below, and harms no other
			}
			a.images = append(a.images, image)
		}
	}
	if err := a.relay.Submit(a.images); err != nil {
		return err
	}
	a.busy, a.decoding = true, *a.tuned.Load()
	return nil
}

// Wait implements predict.Predictor.
func (a *Augmented) Wait(slot int) (*predict.BatchResult, error) {
	switch {
	case slot != 0:
		return nil, a.refuse("wait", engine.ErrShape, "slot %d, there is slot 0 alone", slot)
	case !a.busy:
		return nil, a.refuse("wait", nil, "slot 0 has no request in flight, submit one first")
	}
	a.busy = false
	below, err := a.relay.Wait(a.take)
	if err != nil {
		return nil, err
	}
	a.result.Timing, a.result.Decoding, a.result.Contradiction = below.Timing, below.Decoding, below.Contradiction
	return &a.result, nil
}

// collect takes over what a look showed, and fuses an image's with its last one.
func (a *Augmented) collect(number int, seen *predict.Result) {
	looks := len(a.seen)
	img, look := number/looks, number%looks
	at, image := &a.result.Results[img], &a.given[img]
	at.Err = cmp.Or(at.Err, seen.Err)
	at.Stats.Add(&seen.Stats)
	back := a.seen[look][:0]
	for i := range seen.Detections {
		found := seen.Detections[i].Clone()
		if look > 0 {
			if err := a.Views[look-1].back(&found, image.Width, image.Height); err != nil {
				at.Err = cmp.Or(at.Err, err)
			}
		}
		if found.Width() > 0 && found.Height() > 0 {
			back = append(back, found)
		}
	}
	a.seen[look] = back
	if look < looks-1 || at.Err != nil {
		return
	}
	all := 0
	for _, detections := range a.seen {
		all += len(detections)
	}
	at.Detections = ensemble.ApplyLimits(a.Fuser.Fuse(at.Detections, a.seen), &a.decoding, a.exclusive)
	at.Stats.Suppressed += all - len(at.Detections)
}

// Close implements predict.Predictor.
func (a *Augmented) Close() error {
	a.copies.Free()
	return a.Predictor.Close()
}

var errFlip = errors.New("mirrored: keypoints without names have no known partners (leave flip away)")
