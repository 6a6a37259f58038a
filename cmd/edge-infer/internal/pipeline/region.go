package pipeline

import (
	"image"

	"github.com/edge-infer/edge-infer/engine"
)

// Region is the part of a camera's images that the predictor is given, as shares of their sides. The zero value is all of it.
type Region struct{ X, Y, Width, Height float64 }

// of returns the region in an image of that size, in pixels. Sides are even, as formats with subsampled chroma require.
func (r Region) of(width, height int) image.Rectangle {
	if r.Width <= 0 || r.Height <= 0 {
		return image.Rect(0, 0, width, height)
	}
	even := func(share float64, side int) int { return int(share*float64(side)+0.5) &^ 1 }
	x, y := min(even(r.X, width), width-2), min(even(r.Y, height), height-2)
	right, bottom := min(max(even(r.X+r.Width, width), x+2), width), min(max(even(r.Y+r.Height, height), y+2), height)
	return image.Rect(max(x, 0), max(y, 0), right, bottom)
}

// cut is an image's part. It shares the image's memory where formats allow that; other parts are copied to memory, which is kept for the
// next one.
func cut(img engine.Image, part image.Rectangle, memory *[]byte) engine.Image {
	if part == image.Rect(0, 0, img.Width, img.Height) || img.Check() != nil {
		return img
	}
	if img.HasParts() {
		return img.Part(part)
	}
	size := img.PartBytes(part)
	if cap(*memory) < size {
		*memory = make([]byte, size)
	}
	copied, err := img.CopyPart((*memory)[:size], part)
	if err != nil { // only images without parts are copied, which are in host memory
		return img
	}
	return copied
}
