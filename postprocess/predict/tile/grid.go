package tile

import (
	"image"

	"github.com/edge-infer/edge-infer/engine"
)

// appendGrid appends the tiles of an image of width x height pixels to dst. All have that side, or the image's if it is shorter, and
// neighbours share at least that many pixels, so that every object no larger lies whole in one of them. All begin at even pixels.
func appendGrid(dst []image.Rectangle, width, height, side, shared int) []image.Rectangle {
	step := max((side-shared)&^1, 2)
	for y := 0; ; y += step {
		top := max(min(y, height-side), 0)
		for x := 0; ; x += step {
			left := max(min(x, width-side), 0)
			dst = append(dst, image.Rect(left, top, min(left+side, width), min(top+side, height)))
			if left+side >= width {
				break
			}
		}
		if top+side >= height {
			return dst
		}
	}
}

// part returns a part of an image in the image's memory. Of NV12 in host memory it is a copy in the buffer with that number, which the
// next request reuses.
func (t *Tiled) part(number int, img *engine.Image, part image.Rectangle) (engine.Image, error) {
	if img.HasParts() {
		return img.Part(part), nil
	}
	data, err := t.buffers.Bytes(t.Predictor, number, img.PartBytes(part))
	if err != nil {
		return engine.Image{}, err
	}
	return img.CopyPart(data, part)
}
