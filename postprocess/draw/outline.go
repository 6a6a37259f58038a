package draw

import (
	"image"
	"image/color"
	"math"
)

// Outline paints a path through the points with a text at its first point. A closed path also joins the last point to the first.
func (p *Painter) Outline(img Image, points []Point, closed bool, text string, c color.RGBA) error {
	if err := img.Validate(); err != nil {
		return err
	}
	face, err := p.face(img.Height)
	if err != nil || len(points) == 0 {
		return err
	}
	thick := float32(thickness(img.Height))
	for i := 1; i < len(points); i++ {
		img.stroke(points[i-1], points[i], thick, c)
	}
	if closed {
		img.stroke(points[len(points)-1], points[0], thick, c)
	}
	p.text = append(p.text[:0], text...)
	at := image.Pt(pixel(points[0].X), pixel(points[0].Y))
	p.note(&img, face, image.Rectangle{Min: at, Max: at}, c)
	return nil
}

// Line paints a line with a text at its first point, and an arrow in its middle that points to its right side, seen from the first point to
// the second: the direction in which objects are counted as in.
func (p *Painter) Line(img Image, from, to Point, text string, c color.RGBA) error {
	if err := p.Outline(img, []Point{from, to}, false, text, c); err != nil {
		return err
	}
	dx, dy := to.X-from.X, to.Y-from.Y
	length := float32(math.Hypot(float64(dx), float64(dy)))
	if !(length > 0) || math.IsInf(float64(length), 0) {
		return nil
	}
	thick := float32(thickness(img.Height))
	size := 12 * thick
	x, y := -dy/length*size, dx/length*size // to the right: the y axis points down
	middle := Point{(from.X + to.X) / 2, (from.Y + to.Y) / 2}
	tip := Point{middle.X + x, middle.Y + y}
	img.stroke(middle, tip, thick, c)
	for _, side := range [...]float32{-0.35, 0.35} {
		img.stroke(tip, Point{tip.X - 0.45*x - side*y, tip.Y - 0.45*y + side*x}, thick, c)
	}
	return nil
}
