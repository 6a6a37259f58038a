// Package jpegimage copies the pixels of frames and turns them into JPEGs.
package jpegimage

import (
	"image"

	"github.com/edge-infer/edge-infer/engine"
)

// Pixels are an image in memory, rows without padding. The zero value has none.
type Pixels struct {
	Data          []byte
	Width, Height int
	Format        engine.PixelFormat
}

// Copy takes over the part of an image, and gives where it lies in what was copied: formats that share colour between pixels are copied
// whole. It allocates nothing once it has seen the largest one.
func (p *Pixels) Copy(source engine.Image, part image.Rectangle) image.Rectangle {
	whole := image.Rect(0, 0, source.Width, source.Height)
	part = part.Intersect(whole)
	copied := part
	if source.Format == engine.NV12 || source.Format == engine.YUYV {
		copied = whole
	}
	p.Width, p.Height, p.Format = copied.Dx(), copied.Dy(), source.Format
	row, rows := p.Format.RowBytes(p.Width), p.Format.Rows(p.Height)
	if size := row * rows; cap(p.Data) < size {
		p.Data = make([]byte, size)
	} else {
		p.Data = p.Data[:size]
	}
	from := source.Data
	if copied != whole {
		from = from[copied.Min.Y*source.Stride+p.Format.RowBytes(copied.Min.X):]
	}
	if source.Stride == row {
		copy(p.Data, from)
	} else {
		for y := range rows {
			copy(p.Data[y*row:(y+1)*row], from[y*source.Stride:])
		}
	}
	return part.Sub(copied.Min)
}
