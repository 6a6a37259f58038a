package ensemble

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
)

// View is an augmentation of an image.
type View struct {
	Flip bool // left to right
	// Scale is the scale of the image, from MinScale to 1; 0 stands for 1. A smaller image is padded with grey.
	Scale float64
}

// MinScale is the smallest Scale of a View.
const MinScale = 0.25

// Validate returns an error unless Scale is 0 or from MinScale to 1.
func (v View) Validate() error {
	if v.Scale != 0 && !(v.Scale >= MinScale && v.Scale <= 1) {
		return fmt.Errorf("scale %v, must be %v to 1 (tiles make images larger)", v.Scale, MinScale)
	}
	return nil
}

// ParseView parses a view: flip, scale=0.83, or both joined by +.
func ParseView(text string) (view View, err error) {
	for part := range strings.SplitSeq(text, "+") {
		scale, scaled := strings.CutPrefix(part, "scale=")
		switch {
		case part == "flip" && !view.Flip:
			view.Flip = true
		case scaled && view.Scale == 0:
			view.Scale, err = strconv.ParseFloat(scale, 64)
			if err != nil || view.Scale == 0 {
				return view, fmt.Errorf("scale %q is no number from %v to 1", scale, MinScale)
			}
		default:
			return view, fmt.Errorf("%q must be flip, scale=0.83 or flip+scale=0.83", text)
		}
	}
	return view, view.Validate()
}

// Augmented runs a predictor on several views of every image and fuses the detections. Set the exported fields before Open.
//
// It has one slot, because the views of an image fill all slots of the predictor, and takes as many images in a request as that.
type Augmented struct {
	// Predictor is closed by Close; nothing else may submit to it.
	predict.Predictor
	// Views are used in addition to the image as it is.
	Views []View
	// Fuser holds the settings of fusion; its first weight is that of the image as it is.
	Fuser Fuser
	// Decoding applies to the fused detections; the predictor was opened with MemberDecoding of it.
	Decoding predict.Decoding

	tuned atomic.Pointer[predict.Decoding]

	// Submit and Wait only.
	busy      bool
	batch     int
	exclusive bool
	decoding  predict.Decoding
	batcher   predict.Batcher
	take      func(number int, result *predict.Result)
	images    []engine.Image // all views of an image, then those of the next one
	buffers   predict.ImageBuffers
	copies    predict.ImageBuffers // of images in a GPU's memory
	originals []engine.Image
	views     [][]postprocess.Detection // of one image, by view
	result    predict.BatchResult
}

var _ predict.Predictor = (*Augmented)(nil)

// Open validates the settings. An error leaves the predictor open.
func (a *Augmented) Open() error {
	for _, view := range a.Views {
		if err := view.Validate(); err != nil {
			return err
		}
	}
	model := a.Model()
	if model.Recognised.Task.Maps() {
		return fmt.Errorf("model %s outputs a map (%s), which cannot be fused (use it without augmentation)", model.Path, model.Recognised.Task)
	}
	a.exclusive = exclusiveClasses(&model)
	if err := a.Fuser.Open(1 + len(a.Views)); err != nil {
		return err
	}
	a.batch = a.Model().MaxBatch
	a.batcher.Predictor = a.Predictor
	a.take = a.collect
	a.tuned.Store(&a.Decoding)
	a.views = make([][]postprocess.Detection, 1+len(a.Views))
	a.result.Results = make([]predict.Result, 0, a.batch)
	return nil
}

// Unwrap returns the predictor.
func (a *Augmented) Unwrap() []predict.Predictor { return []predict.Predictor{a.Predictor} }

// Slots implements predict.Predictor.
func (a *Augmented) Slots() int { return 1 }

// Tune implements predict.Predictor.
func (a *Augmented) Tune(d predict.Decoding) error {
	err := a.Predictor.Tune(MemberDecoding(d))
	if err == nil {
		a.tuned.Store(&d)
	}
	return err
}

func (a *Augmented) refuse(op string, kind error, format string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: a.Model().Backend, Kind: kind, Message: fmt.Sprintf(format, arguments...)}
}

// Submit implements predict.Predictor. It starts the first views; Wait continues with the others.
func (a *Augmented) Submit(slot int, images []engine.Image) error {
	switch {
	case slot != 0:
		return a.refuse("submit", engine.ErrShape, "slot %d, there is only slot 0", slot)
	case a.busy:
		return a.refuse("submit", nil, "slot 0 has a request in flight, wait for it first")
	case len(images) < 1 || len(images) > a.batch:
		return a.refuse("submit", engine.ErrShape, "%d images, 1 to %d fit", len(images), a.batch)
	}
	a.images = a.images[:0]
	a.originals = append(a.originals[:0], images...)
	for i := range a.originals {
		if err := a.toHost(i); err != nil {
			return err
		}
	}
	a.result.Results = a.result.Results[:len(images)]
	for i := range images {
		at := &a.result.Results[i]
		at.Detections = at.Detections[:0]
		at.Stats = head.Stats{}
		at.Err = nil
		a.images = append(a.images, a.originals[i])
		for k, view := range a.Views {
			image, err := a.draw(i*len(a.Views)+k, view, &a.originals[i])
			if err != nil {
				at.Err = cmp.Or(at.Err, err)
				image = engine.Image{} // the predictor rejects it alone
			}
			a.images = append(a.images, image)
		}
	}
	if err := a.batcher.Submit(a.images); err != nil {
		return err
	}
	a.busy = true
	a.decoding = *a.tuned.Load()
	return nil
}

// toHost copies an original from a GPU's memory, where no views are made.
func (a *Augmented) toHost(number int) error {
	original := &a.originals[number]
	if !original.OnDevice() {
		return nil
	}
	if err := original.Check(); err != nil {
		return err
	}
	memory, err := a.copies.Bytes(a.Predictor, number, original.HostBytes())
	if err != nil {
		return err
	}
	*original, err = original.ToHost(memory)
	return err
}

// Wait implements predict.Predictor.
func (a *Augmented) Wait(slot int) (*predict.BatchResult, error) {
	switch {
	case slot != 0:
		return nil, a.refuse("wait", engine.ErrShape, "slot %d, there is only slot 0", slot)
	case !a.busy:
		return nil, a.refuse("wait", nil, "slot 0 has no request in flight, submit one first")
	}
	a.busy = false
	all, err := a.batcher.Wait(a.take)
	if err != nil {
		return nil, err
	}
	a.result.Timing = all.Timing
	a.result.Decoding = all.Decoding
	a.result.Contradiction = all.Contradiction
	return &a.result, nil
}

// collect takes the detections of a view, and fuses those of the image after its last view.
func (a *Augmented) collect(number int, result *predict.Result) {
	views := len(a.views)
	img, view := number/views, number%views
	at, image := &a.result.Results[img], &a.originals[img]
	at.Err = cmp.Or(at.Err, result.Err)
	at.Stats.Add(&result.Stats)
	back := a.views[view][:0]
	for i := range result.Detections {
		found := result.Detections[i].Clone()
		if view > 0 {
			if err := a.Views[view-1].toOriginal(&found, image.Width, image.Height); err != nil {
				at.Err = cmp.Or(at.Err, err)
			}
		}
		if found.Width() > 0 && found.Height() > 0 {
			back = append(back, found)
		}
	}
	a.views[view] = back
	if view < views-1 || at.Err != nil {
		return
	}
	all := 0
	for _, detections := range a.views {
		all += len(detections)
	}
	at.Detections = applyLimits(a.Fuser.Fuse(at.Detections, a.views), &a.decoding, a.exclusive, &at.Stats)
	at.Stats.Suppressed += all - len(at.Detections)
}

// Close implements predict.Predictor.
func (a *Augmented) Close() error {
	a.buffers.Free()
	a.copies.Free()
	return a.Predictor.Close()
}

var errFlip = errors.New("flip: the left and right keypoints of a model without keypoint names are not known (leave flip out)")
