package bench

import (
	"sync/atomic"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// requests is a predictor with a limited batch that counts its requests.
type requests struct {
	predict.Predictor
	batch  int
	closed bool // one request at a time

	made, images atomic.Uint64

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
	r.made.Add(1)
	r.images.Add(uint64(len(images)))
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

func (r *requests) counts() (made, images uint64) { return r.made.Load(), r.images.Load() }
