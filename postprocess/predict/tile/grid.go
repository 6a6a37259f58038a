package tile

import (
	"image"

	"github.com/edge-infer/edge-infer/engine"
)

// appendGrid appends the tiles of a picture of width x height pixels to dst. All have that side, or the picture's where it is shorter, and
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

// cut is the part of a picture, in its memory. The part begins and ends at even columns where the format's pixels come in pairs; of NV12
// there is no such view, because its colours lie apart: copied serves.
func cut(picture *engine.Image, part image.Rectangle) engine.Image {
	from := part.Min.Y*picture.Stride + picture.Format.RowBytes(part.Min.X)
	end := (part.Max.Y-1)*picture.Stride + picture.Format.RowBytes(part.Max.X)
	return engine.Image{
		Data: picture.Data[from:end:end], Width: part.Dx(), Height: part.Dy(), Stride: picture.Stride, Format: picture.Format,
	}
}

// copied is the part of a picture in memory of its own, which belongs to the view of that number and is used again by the next request.
func (t *Tiled) copied(number int, picture *engine.Image, part image.Rectangle) (engine.Image, error) {
	for len(t.copies) <= number {
		t.copies = append(t.copies, nil)
	}
	size := picture.PartBytes(part)
	if b := t.copies[number]; b == nil || len(b.Data) < size {
		if b != nil {
			b.Free()
			t.copies[number] = nil
		}
		b, err := t.Alloc(size)
		if err != nil {
			return engine.Image{}, err
		}
		t.copies[number] = b
	}
	return picture.CopyPart(t.copies[number].Data, part), nil
}
