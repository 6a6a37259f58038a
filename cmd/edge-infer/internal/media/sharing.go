package media

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// share runs requests on several predictors: each takes the next one when it has a free slot, so that faster devices do more. Finished
// requests are sent in any order. waited sums the time in nanoseconds that predictors were idle.
func share(
	ctx context.Context, predictors []predict.Predictor, requests <-chan *request, done chan<- *request, waited *atomic.Int64,
) {
	var working sync.WaitGroup
	for _, p := range predictors {
		working.Go(func() {
			w := worker{predictor: p, slots: make([]*request, p.Slots()), done: done, waited: waited}
			w.run(ctx, requests)
		})
	}
	working.Wait()
	close(done)
}

// worker keeps the slots of one predictor busy.
type worker struct {
	predictor predict.Predictor
	slots     []*request // in flight, starting at slot oldest
	oldest    int
	inFlight  int
	images    []engine.Image
	done      chan<- *request
	waited    *atomic.Int64
}

func (w *worker) run(ctx context.Context, requests <-chan *request) {
	for {
		if w.inFlight == 0 {
			begin := time.Now()
			q, more := <-requests
			if !more {
				return
			}
			w.waited.Add(int64(time.Since(begin)))
			w.submit(ctx, q)
			continue
		}
		if w.inFlight < len(w.slots) {
			select {
			case q, more := <-requests:
				if more {
					w.submit(ctx, q)
					continue
				}
				requests = nil
			default:
			}
		}
		w.wait()
		if requests == nil && w.inFlight == 0 {
			return
		}
	}
}

// submit starts a request, or finishes it at once if it has no readable images.
func (w *worker) submit(ctx context.Context, q *request) {
	w.images = w.images[:0]
	for i := range q.images {
		if q.images[i].read {
			w.images = append(w.images, q.images[i].frame.Image())
		}
	}
	if q.err = ctx.Err(); q.err == nil && len(w.images) > 0 {
		slot := (w.oldest + w.inFlight) % len(w.slots)
		if q.err = w.predictor.Submit(slot, w.images); q.err == nil {
			w.slots[slot] = q
			w.inFlight++
			return
		}
	}
	w.done <- q
}

// wait waits for the oldest request and copies its results, because the slot is reused before they are delivered.
func (w *worker) wait() {
	slot := w.oldest
	q := w.slots[slot]
	w.oldest, w.inFlight = (slot+1)%len(w.slots), w.inFlight-1
	result, err := w.predictor.Wait(slot)
	if err == nil && result.Contradiction != nil {
		err = result.Contradiction
	}
	if q.err = err; err == nil {
		q.timing = result.Timing
		next := 0
		for i := range q.images {
			if q.images[i].read {
				q.images[i].seen = result.Results[next].Clone()
				next++
			}
		}
	}
	w.done <- q
}
