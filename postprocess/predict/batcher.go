package predict

import (
	"errors"

	"github.com/edge-infer/edge-infer/engine"
)

// Batcher runs a predictor on any number of images in batches that keep its slots busy, for predictors that make several images of each of
// theirs. Nothing else may submit to the predictor between Submit and Wait. From the second round on it allocates nothing.
type Batcher struct {
	Predictor Predictor

	images   []engine.Image
	next     int // to submit
	oldest   int // slot to wait for
	inFlight int
}

// Submit starts the first batches; Wait continues with the others. The slice and the images must not change until Wait returns.
func (b *Batcher) Submit(images []engine.Image) error {
	b.images = images
	b.next = 0
	b.inFlight = 0
	if err := b.fill(); err != nil {
		return b.drain(err)
	}
	return nil
}

// fill submits batches until all slots are busy.
func (b *Batcher) fill() error {
	slots, batch := b.Predictor.Slots(), b.Predictor.Model().MaxBatch
	for ; b.next < len(b.images) && b.inFlight < slots; b.inFlight++ {
		end := min(b.next+batch, len(b.images))
		if err := b.Predictor.Submit((b.oldest+b.inFlight)%slots, b.images[b.next:end]); err != nil {
			return err
		}
		b.next = end
	}
	return nil
}

// drain waits for all batches in flight after an error, so that the images are no longer used.
func (b *Batcher) drain(err error) error {
	for ; b.inFlight > 0; b.inFlight-- {
		_, failed := b.Predictor.Wait(b.oldest)
		b.oldest = (b.oldest + 1) % b.Predictor.Slots()
		err = errors.Join(err, failed)
	}
	return err
}

// Wait calls each with the result of every image, by its index and in order; it belongs to the predictor and is valid during the call only.
// The returned BatchResult has no results; its times span the first submission to the last end, and sum the work between.
func (b *Batcher) Wait(each func(index int, result *Result)) (all BatchResult, err error) {
	for done := 0; b.inFlight > 0; {
		batch, err := b.Predictor.Wait(b.oldest)
		b.oldest = (b.oldest + 1) % b.Predictor.Slots()
		b.inFlight--
		if err != nil {
			return all, b.drain(err)
		}
		if done == 0 {
			all.Timing.Submitted = batch.Timing.Submitted
		}
		all.Timing.Done = max(all.Timing.Done, batch.Timing.Done)
		all.Timing.Preprocess += batch.Timing.Preprocess
		all.Timing.Inference += batch.Timing.Inference
		all.Timing.Filter += batch.Timing.Filter
		all.Decoding += batch.Decoding
		if batch.Contradiction != nil {
			all.Contradiction = batch.Contradiction
		}
		for i := range batch.Results {
			each(done, &batch.Results[i])
			done++
		}
		if err := b.fill(); err != nil {
			return all, b.drain(err)
		}
	}
	return all, nil
}
