// Package accuracy gives engine/quantize what it must not know itself: how pictures are read, and how the detections of two engines are decoded and
// compared.
package accuracy

import (
	"context"
	"fmt"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// Reader reads picture files with the decoder that cameras use. One goroutine at a time.
type Reader struct {
	pool  capture.Pool
	frame capture.Frame
}

// Read returns the picture of a file. It is valid until the next Read or Close.
func (r *Reader) Read(path string) (engine.Image, error) {
	r.frame.Release()
	source, err := capture.Open(context.Background(), path, capture.Options{Every: true})
	if err != nil {
		return engine.Image{}, err
	}
	defer source.Close()
	if r.frame, err = source.Next(&r.pool); err != nil {
		return engine.Image{}, fmt.Errorf("read picture %s: %w", path, err)
	}
	f := &r.frame
	return engine.Image{Data: f.Data, Width: f.Width, Height: f.Height, Stride: f.Stride, Format: engine.PixelFormat(f.Format)}, nil
}

// Close frees the memory.
func (r *Reader) Close() {
	r.frame.Release()
	r.pool.Close()
}
