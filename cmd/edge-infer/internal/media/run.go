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

// Run takes files through a predictor, one request after the other.
type Run struct {
	Predictor predict.Predictor
	// Each gets every picture with its file, its number in the file and what it shows; all of it is valid during the call only.
	Each func(path string, number int, frame *capture.Frame, seen *predict.Picture, timing engine.Timing) error

	pool   capture.Pool
	frames []capture.Frame
	images []engine.Image
}

// Files reads every input to its end. One that cannot be read is reported at the end; the others are read all the same.
func (r *Run) Files(ctx context.Context, inputs []string) error {
	r.pool = capture.Pool{Buffers: r.Predictor.Model().MaxBatch, Alloc: func(size int) ([]byte, func(), error) {
		buffer, err := r.Predictor.Alloc(size)
		if err != nil {
			return nil, nil, err
		}
		return buffer.Data, buffer.Free, nil
	}}
	defer r.pool.Close()
	var errs []error
	for _, input := range inputs {
		files, err := Expand(input)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, file := range files {
			if err := r.file(ctx, file); err != nil {
				errs = append(errs, err)
			}
			if ctx.Err() != nil {
				return errors.Join(append(errs, context.Cause(ctx))...)
			}
		}
	}
	return errors.Join(errs...)
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

func (r *Run) file(ctx context.Context, path string) error {
	opened, err := source.Open(ctx, path, capture.Options{Every: true, MaxPixels: capture.MaxPixels})
	if err != nil {
		return err
	}
	defer opened.Close()
	for number := 0; ; {
		frame, err := opened.Next(&r.pool)
		if err == nil {
			r.frames = append(r.frames, frame)
			r.images = append(r.images, frame.Image())
		}
		if len(r.frames) > 0 && (err != nil || len(r.frames) == r.Predictor.Model().MaxBatch) {
			done, failed := r.batch(path, number)
			number += done
			if failed != nil {
				return fmt.Errorf("%s: %w", path, failed)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// batch runs the frames that were gathered, the first of which has that number in its file.
func (r *Run) batch(path string, number int) (done int, err error) {
	defer func() {
		for i := range r.frames {
			r.frames[i].Release()
		}
		r.frames, r.images = r.frames[:0], r.images[:0]
	}()
	if err := r.Predictor.Submit(0, r.images); err != nil {
		return 0, err
	}
	result, err := r.Predictor.Wait(0)
	if err != nil {
		return 0, err
	}
	if result.Contradiction != nil {
		return 0, result.Contradiction
	}
	for i := range r.frames {
		seen := &result.Pictures[i]
		if seen.Err != nil {
			return i, seen.Err
		}
		if err := r.Each(path, number+i, &r.frames[i], seen, result.Timing); err != nil {
			return i, err
		}
	}
	return len(r.frames), nil
}
