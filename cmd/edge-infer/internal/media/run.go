// Package media runs networks on files: images, directories of images and videos, in order. Images are decoded ahead on several cores, and
// several predictors share the requests.
package media

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Run runs predictors on files. A request holds a full batch of images, also of different files.
type Run struct {
	// Predictors share the requests: each takes the next one as soon as it has a free slot. They differ only in the device.
	Predictors []predict.Predictor
	// Ahead decodes images while others are inferred, with Readers goroutines, 0 for one per core. Without it only one image is read or one
	// request runs at a time, for undisturbed time measurements.
	Ahead   bool
	Readers int
	// Each is called for every image in order, with its file, its number in the file and the result; all are valid during the call only.
	Each func(path string, number int, frame *capture.Frame, seen *predict.Result, timing engine.Timing) error
	// Failed is called in order for every image, and every rest of a video, that could not be read or inferred. If it is nil, Files returns
	// the errors.
	Failed func(path string, rest bool, err error)
	// Short is called for a video that ends long before the duration in its header; may be nil. It is called from another goroutine.
	Short func(path string, reached, duration time.Duration)
	// Skip reports whether a file is skipped, before any is read; may be nil.
	Skip func(path string) bool

	errs   []error
	waited atomic.Int64 // sum of all predictors in nanoseconds
}

// Waited returns the mean time that a predictor was idle and waited for images.
func (r *Run) Waited() time.Duration {
	return time.Duration(r.waited.Load() / int64(len(r.Predictors)))
}

// item is an image in the pipeline with its result.
type item struct {
	path   string
	number int
	frame  capture.Frame
	seen   predict.Result // Err is also the error of reading
	read   bool
	last   bool // end of the video
}

// request is a batch of images.
type request struct {
	number int
	images []item // including unreadable ones
	timing engine.Timing
	err    error // of the whole request
}

// Files processes all files. An error of Each, or of a predictor as a whole, ends it.
func (r *Run) Files(ctx context.Context, files []string) error {
	r.errs = nil
	r.waited.Store(0)
	if r.Skip != nil {
		files = slices.DeleteFunc(slices.Clone(files), r.Skip)
	}
	err := r.work(ctx, files)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return errors.Join(append(r.errs, err)...)
}

// work starts readers and predictors, and calls Each in order.
func (r *Run) work(ctx context.Context, files []string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	batch, slots := r.Predictors[0].Model().MaxBatch, 0
	for _, p := range r.Predictors {
		slots += p.Slots()
	}
	room, readers := batch, 1
	if r.Ahead {
		if readers = r.Readers; readers <= 0 {
			readers = runtime.NumCPU()
		}
		room = batch*(slots+1) + readers
	}
	in := newReading(room, r.memory())
	in.short = r.Short
	defer in.pool.Close()
	go in.files(ctx, files, readers)
	requests, done := make(chan *request, len(r.Predictors)), make(chan *request)
	go in.gather(ctx, batch, requests)
	go share(ctx, r.Predictors, requests, done, &r.waited)

	var failed error
	early := map[int]*request{}
	next := 0
	for finished := range done {
		early[finished.number] = finished
		for q := early[next]; q != nil; q = early[next] {
			delete(early, next)
			next++
			if failed == nil {
				failed = r.deliver(q)
			}
			if in.release(q); failed != nil {
				stop()
			}
		}
	}
	for _, q := range early { // an earlier one was abandoned
		in.release(q)
	}
	return failed
}

// memory returns the allocator for decoded images: memory that the predictor reads without a copy, or nil with several predictors.
func (r *Run) memory() capture.Alloc {
	if len(r.Predictors) > 1 {
		return nil
	}
	return func(size int) ([]byte, func(), error) {
		buffer, err := r.Predictors[0].Alloc(size)
		if err != nil {
			return nil, nil, err
		}
		return buffer.Data, buffer.Free, nil
	}
}

func (r *Run) fail(p *item, err error) {
	if r.Failed != nil {
		r.Failed(p.path, p.last, err)
		return
	}
	r.errs = append(r.errs, err)
}

// deliver passes the images of a request to Each or Failed.
func (r *Run) deliver(q *request) error {
	for i := range q.images {
		p := &q.images[i]
		switch err := p.seen.Err; {
		case err != nil && !p.read:
			r.fail(p, err)
		case q.err != nil:
			return fmt.Errorf("%s: %w", p.path, q.err)
		case err != nil:
			r.fail(p, fmt.Errorf("%s: %w", p.path, err))
		default:
			if err := r.Each(p.path, p.number, &p.frame, &p.seen, q.timing); err != nil {
				return fmt.Errorf("%s: %w", p.path, err)
			}
		}
	}
	return nil
}
