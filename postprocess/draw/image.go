// Package draw paints detections and maps onto an image in the caller's memory. It is plain Go.
package draw

import (
	"fmt"
	"image"
	"image/color"
	"math"
)

// Image is a BGR image, 3 bytes per pixel, in the caller's memory. Only its Width x Height pixels are written.
type Image struct {
	Data                  []byte
	Width, Height, Stride int // pixels, pixels, bytes per row
}

// Validate returns an error if the size does not fit the memory. Painting an invalid image does nothing.
func (p *Image) Validate() error {
	const maxSide = 1 << 15
	switch {
	case p.Width < 1 || p.Height < 1 || p.Width > maxSide || p.Height > maxSide:
		return fmt.Errorf("image of %dx%d, sides must be 1 to %d", p.Width, p.Height, maxSide)
	case p.Stride < 3*p.Width || len(p.Data) < p.Stride*(p.Height-1)+3*p.Width:
		return fmt.Errorf("%d bytes for a BGR image of %dx%d with stride %d", len(p.Data), p.Width, p.Height, p.Stride)
	}
	return nil
}

func (p *Image) bounds() image.Rectangle { return image.Rect(0, 0, p.Width, p.Height) }

// fill paints the part of the rectangle that is on the image.
func (p *Image) fill(r image.Rectangle, c color.RGBA) {
	r = r.Intersect(p.bounds())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		row := p.Data[y*p.Stride+3*r.Min.X : y*p.Stride+3*r.Max.X]
		for i := 0; i < len(row); i += 3 {
			row[i], row[i+1], row[i+2] = c.B, c.G, c.R
		}
	}
}

// blend mixes a colour into the pixel at x, y, which must be on the image; alpha is 0 to 255.
func (p *Image) blend(x, y int, c color.RGBA, alpha uint32) {
	pixel := p.Data[y*p.Stride+3*x : y*p.Stride+3*x+3]
	for i, channel := range [3]uint8{c.B, c.G, c.R} {
		pixel[i] = uint8((uint32(pixel[i])*(255-alpha) + uint32(channel)*alpha + 127) / 255)
	}
}

// frame paints the border of a rectangle, inside of it.
func (p *Image) frame(r image.Rectangle, thickness int, c color.RGBA) {
	thickness = min(thickness, (r.Dx()+1)/2, (r.Dy()+1)/2)
	p.fill(image.Rect(r.Min.X, r.Min.Y, r.Max.X, r.Min.Y+thickness), c)
	p.fill(image.Rect(r.Min.X, r.Max.Y-thickness, r.Max.X, r.Max.Y), c)
	p.fill(image.Rect(r.Min.X, r.Min.Y+thickness, r.Min.X+thickness, r.Max.Y-thickness), c)
	p.fill(image.Rect(r.Max.X-thickness, r.Min.Y+thickness, r.Max.X, r.Max.Y-thickness), c)
}

// Point is a position on the image in pixels.
type Point struct{ X, Y float32 }

// stroke paints a straight line with round ends and soft edges.
func (p *Image) stroke(from, to Point, thickness float32, c color.RGBA) {
	half := thickness / 2
	low := image.Pt(pixel(min(from.X, to.X)-half-1), pixel(min(from.Y, to.Y)-half-1))
	high := image.Pt(pixel(max(from.X, to.X)+half+2), pixel(max(from.Y, to.Y)+half+2))
	area := image.Rectangle{Min: low, Max: high}.Intersect(p.bounds())
	dx, dy := to.X-from.X, to.Y-from.Y
	length := dx*dx + dy*dy
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			px, py := float32(x)+0.5-from.X, float32(y)+0.5-from.Y
			along := float32(0)
			if length > 0 {
				along = min(max((px*dx+py*dy)/length, 0), 1)
			}
			ox, oy := px-along*dx, py-along*dy
			distance := float32(math.Sqrt(float64(ox*ox + oy*oy)))
			if cover := half + 0.5 - distance; cover > 0 {
				p.blend(x, y, c, uint32(255*min(cover, 1)))
			}
		}
	}
}

// pixel rounds a coordinate; NaN and values far outside every image stay representable.
func pixel(v float32) int {
	const far = 1 << 20
	if !(v > -far) {
		return -far
	}
	return int(math.Floor(float64(min(v, far))))
}
