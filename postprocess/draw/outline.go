package draw

import "image/color"

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
	p.note(&img, face, pixel(points[0].X), pixel(points[0].Y), c)
	return nil
}
