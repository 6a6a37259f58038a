// Package media takes files through a network: pictures, directories of pictures, and films, one frame after the other.
package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Run takes files through a predictor, one request after the other. A request holds as many pictures as the predictor takes, whichever
// files they are of.
type Run struct {
	Predictor predict.Predictor
	// Each gets every picture, in order, with its file, its number in the file and what it shows; all of it is valid during the call only.
	Each func(path string, number int, frame *capture.Frame, seen *predict.Picture, timing engine.Timing) error
	// Failed gets every picture and every rest of a film that could not be read or run, and why; the others follow all the same. With nil
	// they are what Files returns.
	Failed func(path string, err error)
	// Skip says which pictures are left out; nil for none.
	Skip func(path string, number int) bool

	pool    capture.Pool
	pending []pending
	images  []engine.Image
	errs    []error
}

// pending is a picture that waits for the others of its request.
type pending struct {
	path   string
	number int
	frame  capture.Frame
}

// Files reads every input to its end. An error of Each, or of the predictor as a whole, ends it.
func (r *Run) Files(ctx context.Context, inputs []string) error {
	r.pool = capture.Pool{Buffers: r.Predictor.Model().MaxBatch, Alloc: func(size int) ([]byte, func(), error) {
		buffer, err := r.Predictor.Alloc(size)
		if err != nil {
			return nil, nil, err
		}
		return buffer.Data, buffer.Free, nil
	}}
	defer r.pool.Close()
	defer r.release()
	r.errs = nil
	for _, input := range inputs {
		files, err := Expand(input)
		if err != nil {
			r.fail(input, err)
		}
		for _, file := range files {
			if err := r.file(ctx, file); err != nil {
				return errors.Join(append(r.errs, err)...)
			}
			if ctx.Err() != nil {
				return errors.Join(append(r.errs, context.Cause(ctx))...)
			}
		}
	}
	return errors.Join(append(r.errs, r.request())...)
}

func (r *Run) fail(path string, err error) {
	if r.Failed != nil {
		r.Failed(path, err)
		return
	}
	r.errs = append(r.errs, err)
}

// Expand lists the files of a directory; anything else stands for itself.
func Expand(input string) ([]string, error) {
	info, err := os.Stat(input)
	if err != nil || !info.IsDir() {
		return []string{input}, nil //nolint:nilerr // capture says what is wrong with it
	}
	entries, err := os.ReadDir(input)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && source.Readable(entry.Name()) {
			files = append(files, filepath.Join(input, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no picture or video in this directory", input)
	}
	return files, nil
}

// file reads a file to its end. Its error is one that ends the run.
func (r *Run) file(ctx context.Context, path string) error {
	opened, err := source.Open(ctx, path, capture.Options{Every: true, MaxPixels: capture.MaxPixels})
	if err != nil {
		r.fail(path, err)
		return nil
	}
	defer opened.Close()
	for number := 0; ctx.Err() == nil; number++ {
		frame, err := opened.Next(&r.pool)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			r.fail(path, err)
			return nil
		}
		if r.Skip != nil && r.Skip(path, number) {
			frame.Release()
			continue
		}
		r.pending = append(r.pending, pending{path, number, frame})
		if len(r.pending) < r.Predictor.Model().MaxBatch {
			continue
		}
		if err := r.request(); err != nil {
			return err
		}
	}
	return nil
}

// request runs the pictures that wait.
func (r *Run) request() error {
	defer r.release()
	if len(r.pending) == 0 {
		return nil
	}
	r.images = r.images[:0]
	for i := range r.pending {
		r.images = append(r.images, r.pending[i].frame.Image())
	}
	var result *predict.Result
	err := r.Predictor.Submit(0, r.images)
	if err == nil {
		result, err = r.Predictor.Wait(0)
	}
	if err == nil && result.Contradiction != nil {
		err = result.Contradiction
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.pending[0].path, err)
	}
	for i := range r.pending {
		at, seen := &r.pending[i], &result.Pictures[i]
		if seen.Err != nil {
			r.fail(at.path, fmt.Errorf("%s: %w", at.path, seen.Err))
			continue
		}
		if err := r.Each(at.path, at.number, &at.frame, seen, result.Timing); err != nil {
			return fmt.Errorf("%s: %w", at.path, err)
		}
	}
	return nil
}

// release gives the pictures' memory back.
func (r *Run) release() {
	for i := range r.pending {
		r.pending[i].frame.Release()
	}
	r.pending = r.pending[:0]
}
