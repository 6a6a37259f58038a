package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// inference takes files through the network one request after the other.
type inference struct {
	engine   engine.Engine
	detector *pipeline.Detector
	// each gets every picture with its file, its number in the file and what was seen; all of it is valid during the call only.
	each func(path string, number int, frame *capture.Frame, detections []postprocess.Detection) error

	pool    capture.Pool
	frames  []capture.Frame
	images  []engine.Image
	results []postprocess.Detection
}

// run reads every input to its end. A file that cannot be read is reported at the end; the others are read all the same.
func (in *inference) run(ctx context.Context, inputs []string) error {
	in.pool = capture.Pool{Buffers: in.engine.Model().MaxBatch, Alloc: func(size int) ([]byte, func(), error) {
		buffer, err := in.engine.Alloc(size)
		if err != nil {
			return nil, nil, err
		}
		return buffer.Data, buffer.Free, nil
	}}
	defer in.pool.Close()
	var errs []error
	for _, input := range inputs {
		files, err := expand(input)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, file := range files {
			if err := in.file(ctx, file); err != nil {
				errs = append(errs, err)
			}
			if ctx.Err() != nil {
				return errors.Join(append(errs, context.Cause(ctx))...)
			}
		}
	}
	return errors.Join(errs...)
}

// expand lists the files of a directory; anything else stands for itself.
func expand(input string) ([]string, error) {
	info, err := os.Stat(input)
	if err != nil || !info.IsDir() {
		return []string{input}, nil // capture says what is wrong with it
	}
	entries, err := os.ReadDir(input)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && capture.Readable(entry.Name()) {
			files = append(files, filepath.Join(input, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no picture or video in this directory", input)
	}
	return files, nil
}

func (in *inference) file(ctx context.Context, path string) error {
	source, err := capture.Open(ctx, path, capture.Options{Every: true})
	if err != nil {
		return err
	}
	defer source.Close()
	for number := 0; ; {
		frame, err := source.Next(&in.pool)
		if err == nil {
			in.frames = append(in.frames, frame)
			in.images = append(in.images, engine.Image{
				Data: frame.Data, Width: frame.Width, Height: frame.Height, Stride: frame.Stride, Format: engine.PixelFormat(frame.Format),
			})
		}
		if len(in.frames) > 0 && (err != nil || len(in.frames) == in.engine.Model().MaxBatch) {
			done, failed := in.batch(path, number)
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
func (in *inference) batch(path string, number int) (int, error) {
	defer func() {
		for i := range in.frames {
			in.frames[i].Release()
		}
		in.frames, in.images = in.frames[:0], in.images[:0]
	}()
	if err := in.engine.Submit(0, in.images); err != nil {
		return 0, err
	}
	result, err := in.engine.Wait(0)
	if err != nil {
		return 0, err
	}
	for i := range in.frames {
		frame := &in.frames[i]
		in.results, err = in.detector.Decode(result, i, frame.Width, frame.Height, in.results[:0])
		if err != nil {
			return i, err
		}
		if err := in.each(path, number+i, frame, in.results); err != nil {
			return i, err
		}
	}
	return len(in.frames), nil
}
