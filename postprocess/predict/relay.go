package predict

import (
	"errors"

	"github.com/edge-infer/edge-infer/engine"
)

// Batcher takes any number of images through a predictor and keeps its slots busy meanwhile: what predictors are made of that show another
// one several images for each of theirs. Nothing else may submit to the predictor between Submit and Wait. From the second round on it
// allocates nothing.
type Batcher struct {
	Predictor Predictor

	images   []engine.Image
	next     int // to submit
	oldest   int // slot that is waited for first
	inFlight int
}

// Submit starts the first images; Wait goes on with the others. The slice and the images' memory stay as they are until Wait returns.
func (r *Batcher) Submit(images []engine.Image) error {
	r.images, r.next, r.inFlight = images, 0, 0
	if err := r.fill(); err != nil {
		return r.drain(err)
	}
	return nil
}

// fill keeps the slots busy.
func (r *Batcher) fill() error {
	slots, batch := r.Predictor.Slots(), r.Predictor.Model().MaxBatch
	for ; r.next < len(r.images) && r.inFlight < slots; r.inFlight++ {
		end := min(r.next+batch, len(r.images))
		if err := r.Predictor.Submit((r.oldest+r.inFlight)%slots, r.images[r.next:end]); err != nil {
			return err
		}
		r.next = end
	}
	return nil
}

// drain ends a request that failed: what is under way is waited for and thrown away, so that the images' memory is free.
func (r *Batcher) drain(err error) error {
	for ; r.inFlight > 0; r.inFlight-- {
		_, failed := r.Predictor.Wait(r.oldest)
		r.oldest = (r.oldest + 1) % r.Predictor.Slots()
		err = errors.Join(err, failed)
	}
	return err
}

// Wait hands out what every image shows, by its number and in order; it belongs to the predictor and is valid during the call only. The
// result has no images: its times are from the first submission to the last end, and the sum of the work between.
func (r *Batcher) Wait(each func(number int, seen *Result)) (all BatchResult, err error) {
	for done := 0; r.inFlight > 0; {
		below, err := r.Predictor.Wait(r.oldest)
		r.oldest, r.inFlight = (r.oldest+1)%r.Predictor.Slots(), r.inFlight-1
		if err != nil {
			return all, r.drain(err)
		}
		if done == 0 {
			all.Timing.Submitted = below.Timing.Submitted
		}
		all.Timing.Done = max(all.Timing.Done, below.Timing.Done)
		all.Timing.Preprocess += below.Timing.Preprocess
		all.Timing.Inference += below.Timing.Inference
		all.Timing.Filter += below.Timing.Filter
		all.Decoding += below.Decoding
		if below.Contradiction != nil {
			all.Contradiction = below.Contradiction
		}
		for i := range below.Results {
			each(done, &below.Results[i])
			done++
		}
		if err := r.fill(); err != nil {
			return all, r.drain(err)
		}
	}
	return all, nil
}
