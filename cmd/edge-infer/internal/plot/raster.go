package plot

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// raster is a canvas of pixels.
type raster struct {
	img   *image.RGBA // what package vector is fast with
	scale float64     // pixels a point
	fill  vector.Rasterizer
}

func newRaster(width, height, scale float64) *raster {
	bounds := image.Rect(0, 0, int(math.Ceil(width*scale)), int(math.Ceil(height*scale)))
	return &raster{img: image.NewRGBA(bounds), scale: scale}
}

func (r *raster) encode(out io.Writer) error {
	return png.Encode(out, r.img)
}

// contour is a closed outline in pixels. All contours of one shape run the same way round, holes the other way.
type contour []point

// paint fills the contours. Only the pixels around them are looked at, because a diagram has thousands of small shapes.
func (r *raster) paint(contours []contour, colour color.NRGBA) {
	box := rectangle{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for _, c := range contours {
		for _, p := range c {
			box = rectangle{min(box.left, p.x), min(box.top, p.y), max(box.right, p.x), max(box.bottom, p.y)}
		}
	}
	if !(box.left <= box.right && box.top <= box.bottom) {
		return
	}
	area := image.Rect(int(box.left)-1, int(box.top)-1, int(box.right)+2, int(box.bottom)+2).Intersect(r.img.Bounds())
	if area.Empty() {
		return
	}
	r.fill.Reset(area.Dx(), area.Dy())
	x, y := float64(area.Min.X), float64(area.Min.Y)
	for _, c := range contours {
		for i, p := range c {
			if i == 0 {
				r.fill.MoveTo(float32(p.x-x), float32(p.y-y))
			} else {
				r.fill.LineTo(float32(p.x-x), float32(p.y-y))
			}
		}
		r.fill.ClosePath()
	}
	r.fill.DrawOp = draw.Over
	r.fill.Draw(r.img, area, image.NewUniform(colour), image.Point{})
}

func (r *raster) area(points []point, colour color.NRGBA) {
	outline := make(contour, len(points))
	for i, p := range points {
		outline[i] = point{p.x * r.scale, p.y * r.scale}
	}
	r.paint([]contour{outline}, colour)
}

func (r *raster) disc(centre point, radius float64, colour color.NRGBA) {
	r.paint([]contour{circle(point{centre.x * r.scale, centre.y * r.scale}, radius*r.scale)}, colour)
}

// circle runs clockwise on the screen.
func circle(centre point, radius float64) contour {
	corners := max(8, int(4*radius))
	c := make(contour, corners)
	for i := range c {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / float64(corners))
		c[i] = point{centre.x + radius*cos, centre.y + radius*sin}
	}
	return c
}

func (r *raster) line(points []point, width, dash float64, colour color.NRGBA) {
	half := width * r.scale / 2
	var contours []contour
	for _, part := range dashes(points, dash) {
		for i, p := range part {
			p = point{p.x * r.scale, p.y * r.scale}
			if i > 0 {
				before := point{part[i-1].x * r.scale, part[i-1].y * r.scale}
				contours = append(contours, bar(before, p, half))
			}
			if i > 0 && i < len(part)-1 && half > 0.75 {
				contours = append(contours, circle(p, half)) // a round joint
			}
		}
	}
	r.paint(contours, colour)
}

// bar is a straight piece of a line. It runs clockwise on the screen, whichever way the line goes.
func bar(a, b point, half float64) contour {
	length := math.Hypot(b.x-a.x, b.y-a.y)
	if length == 0 {
		return nil
	}
	x, y := half*(b.y-a.y)/length, half*(a.x-b.x)/length
	return contour{{a.x + x, a.y + y}, {b.x + x, b.y + y}, {b.x - x, b.y - y}, {a.x - x, a.y - y}}
}

// dashes cuts a line into its dashes; a line without is one piece.
func dashes(points []point, dash float64) [][]point {
	if dash <= 0 || len(points) < 2 {
		return [][]point{points}
	}
	var parts [][]point
	part := []point{points[0]}
	drawn, left := true, dash
	for i := 1; i < len(points); i++ {
		from, to := points[i-1], points[i]
		for length := math.Hypot(to.x-from.x, to.y-from.y); length > left; length = math.Hypot(to.x-from.x, to.y-from.y) {
			from = point{from.x + (to.x-from.x)*left/length, from.y + (to.y-from.y)*left/length}
			if drawn {
				parts = append(parts, append(part, from))
			}
			drawn, left, part = !drawn, dash, []point{from}
		}
		left -= math.Hypot(to.x-from.x, to.y-from.y)
		part = append(part, to)
	}
	if drawn {
		parts = append(parts, part)
	}
	return parts
}

func (r *raster) write(at point, text string, l label) {
	size := l.size * r.scale
	offset := -glyphs(text, nil) * size * [...]float64{start: 0, middle: 0.5, end: 1}[l.align]
	origin := point{at.x * r.scale, at.y * r.scale}
	place := func(x, y float64) point { // from the baseline's beginning, in pixels
		if l.upward {
			return point{origin.x + y, origin.y - offset - x}
		}
		return point{origin.x + offset + x, origin.y + y}
	}
	var contours []contour
	glyphs(text, func(outline sfnt.Segments, begin float64) {
		contours = append(contours, flatten(outline, func(p fixed.Point26_6) point {
			return place(size*(begin+ems(p.X)), size*ems(p.Y))
		})...)
	})
	r.paint(contours, l.colour)
}

// flatten turns a glyph's curves into short straight pieces.
func flatten(outline sfnt.Segments, place func(fixed.Point26_6) point) (contours []contour) {
	const pieces = 6
	var now point
	for _, s := range outline {
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			now = place(s.Args[0])
			contours = append(contours, contour{now})
			continue
		case sfnt.SegmentOpLineTo:
			now = place(s.Args[0])
			contours[len(contours)-1] = append(contours[len(contours)-1], now)
			continue
		}
		a, b, c := now, place(s.Args[0]), place(s.Args[1])
		d := c
		if s.Op == sfnt.SegmentOpCubeTo {
			d = place(s.Args[2])
		} else { // the same curve with two points that pull
			b, c = point{a.x + (b.x-a.x)*2/3, a.y + (b.y-a.y)*2/3}, point{c.x + (b.x-c.x)*2/3, c.y + (b.y-c.y)*2/3}
		}
		for i := 1; i <= pieces; i++ {
			t := float64(i) / pieces
			u := 1 - t
			now = point{
				u*u*u*a.x + 3*u*u*t*b.x + 3*u*t*t*c.x + t*t*t*d.x,
				u*u*u*a.y + 3*u*u*t*b.y + 3*u*t*t*c.y + t*t*t*d.y,
			}
			contours[len(contours)-1] = append(contours[len(contours)-1], now)
		}
	}
	return contours
}
