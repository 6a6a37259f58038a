// Package media takes files through a network: images, directories of images, and videos, in their order. Images are decoded ahead on
// several cores, and several predictors share the requests.
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

// Run takes files through predictors. A request holds as many images as they take, whichever files they are of.
type Run struct {
	// Predictors share the requests: each takes the next one as soon as it has a slot free. They are equal but for the device.
	Predictors []predict.Predictor
	// Ahead lets images be decoded while others are run, by Readers goroutines, one for each core when that is 0. Without it one image
	// is read, or one request runs, at a time: nothing else takes from what a request takes.
	Ahead   bool
	Readers int
	// Each gets every image, in order, with its file, its number in the file and what it shows; all of it is valid during the call only.
	Each func(path string, number int, frame *capture.Frame, seen *predict.Result, timing engine.Timing) error
	// Failed gets every image and every rest of a video that could not be read or run, and why, in its place; the others follow all the
	// same. With nil they are what Files returns.
	Failed func(path string, rest bool, err error)
	// Short hears of a video that ended long before its file says; nil for nobody. It is called from another goroutine.
	Short func(path string, reached, told time.Duration)
	// Skip says which files are left out, before any is read; nil for none.
	Skip func(path string) bool

	errs   []error
	waited atomic.Int64 // of all predictors together, nanoseconds
}

// Waited is for how long a predictor had nothing to do but to wait for images, in the mean.
func (r *Run) Waited() time.Duration {
	return time.Duration(r.waited.Load() / int64(len(r.Predictors)))
}

// image is one image on its way, or what has become of it.
type img struct {
	path   string
	number int
	frame  capture.Frame
	seen   predict.Result // its Err says too why it could not be read
	read   bool
	last   bool // nothing of the video follows
}

// request is some images that a predictor sees at once.
type request struct {
	number int
	images []img // those that could not be read are among them
	timing engine.Timing
	err    error // of all of it
}

// Files reads every file to its end. An error of Each, or of a predictor as a whole, ends it.
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

// work starts what reads and runs the files, and takes what comes out to Each in its order.
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
	for _, q := range early { // one before them was given up
		in.release(q)
	}
	return failed
}

// memory is where images are decoded into: what a predictor reads without a copy, unless several have to read it.
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

func (r *Run) fail(p *img, err error) {
	if r.Failed != nil {
		r.Failed(p.path, p.last, err)
		return
	}
	r.errs = append(r.errs, err)
}

// deliver hands the images of a request out.
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
