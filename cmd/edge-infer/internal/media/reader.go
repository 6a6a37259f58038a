package media

import (
	"context"
	"fmt"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/engine"
)

// Reader reads image files with the decoder that cameras use. It must be used by one goroutine at a time.
type Reader struct {
	pool  capture.Pool
	frame capture.Frame
}

// Read decodes an image file. The image is valid until the next Read or Close.
func (r *Reader) Read(path string) (engine.Image, error) {
	r.frame.Release()
	opened, err := source.Open(context.Background(), path, capture.Options{EveryFrame: true, MaxPixels: maxPixels()})
	if err != nil {
		return engine.Image{}, err
	}
	defer opened.Close()
	if r.frame, err = opened.Next(&r.pool); err != nil {
		return engine.Image{}, fmt.Errorf("read image %s: %w", path, err)
	}
	return r.frame.Image(), nil
}

// Close frees the memory.
func (r *Reader) Close() {
	r.frame.Release()
	r.pool.Close()
}
