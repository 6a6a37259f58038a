package bench

import (
	"sync"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// requests is a predictor with a limited batch that counts its requests.
type requests struct {
	predict.Predictor
	batch  int
	closed bool // one request at a time

	mu           sync.Mutex
	made, images uint64 // a reader must not see the one without the other: their quotient is reported

	failed error // the last one; frame goroutine only while the loop runs
}

// Model implements pipeline.Predictor.
func (r *requests) Model() predict.Model {
	m := r.Predictor.Model()
	m.MaxBatch = r.batch
	return m
}

// Slots implements pipeline.Predictor.
func (r *requests) Slots() int {
	if r.closed {
		return 1
	}
	return r.Predictor.Slots()
}

// Submit implements pipeline.Predictor.
func (r *requests) Submit(slot int, images []engine.Image) error {
	r.mu.Lock()
	r.made++
	r.images += uint64(len(images))
	r.mu.Unlock()
	err := r.Predictor.Submit(slot, images)
	if err != nil {
		r.failed = err
	}
	return err
}

// Wait implements pipeline.Predictor.
func (r *requests) Wait(slot int) (*predict.BatchResult, error) {
	result, err := r.Predictor.Wait(slot)
	if err != nil {
		r.failed = err
		return nil, err
	}
	for i := range result.Results {
		if err := result.Results[i].Err; err != nil {
			r.failed = err
		}
	}
	return result, nil
}

func (r *requests) counts() (made, images uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made, r.images
}
