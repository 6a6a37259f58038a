package bench

import (
	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
)

// allocator allocates memory that the engine reads without a copy.
type allocator interface {
	Alloc(size int) (*engine.Buffer, error)
}

// draw renders images of the demo scene into a predictor's memory.
func draw(memory allocator, count, width, height int) ([][]byte, error) {
	belt := &scene.Scene{Width: width, Height: height, Seed: 1}
	if err := belt.Open(); err != nil {
		return nil, err
	}
	stride := engine.BGR.RowBytes(width)
	images := make([][]byte, count)
	var truth []scene.Part
	for i := range images {
		buffer, err := memory.Alloc(stride * height)
		if err != nil {
			return nil, err
		}
		images[i] = buffer.Data
		if truth, err = belt.Draw(i*7, buffer.Data, stride, truth[:0]); err != nil {
			return nil, err
		}
	}
	return images, nil
}
