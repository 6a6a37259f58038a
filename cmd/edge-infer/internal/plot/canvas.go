package plot

import "image/color"

// Sizes in points, of which a screen has 96 to the inch.
const (
	gap       = 12.0 // around panels
	titleSize = 15.0
	headSize  = 13.0 // of a panel's title
	textSize  = 11.5
)

// The colours of everything but the data.
var (
	paper = color.NRGBA{255, 255, 255, 255}
	ink   = color.NRGBA{34, 34, 34, 255}
	faint = color.NRGBA{136, 136, 136, 255} // frames and reference lines
	grid  = color.NRGBA{228, 228, 228, 255}
)

// palette are colours that colour-blind readers can tell apart (Okabe and Ito), the yellow left out, which is hard to see on white.
var palette = []color.NRGBA{
	{0, 114, 178, 255},
	{213, 94, 0, 255},
	{0, 158, 115, 255},
	{204, 121, 167, 255},
	{86, 180, 233, 255},
	{230, 159, 0, 255},
	{34, 34, 34, 255},
}

// headSpace is the height of a panel's title, and a little where there is none.
func headSpace(title string) float64 {
	if title == "" {
		return textSize / 2
	}
	return 1.6 * headSize
}

// point is a place on the canvas, from its upper left corner, in points.
type point struct{ x, y float64 }

type rectangle struct{ left, top, right, bottom float64 }

func (r rectangle) width() float64  { return r.right - r.left }
func (r rectangle) height() float64 { return r.bottom - r.top }

func (r rectangle) corners() []point {
	return []point{{r.left, r.top}, {r.right, r.top}, {r.right, r.bottom}, {r.left, r.bottom}}
}

// canvas is what panels draw on.
type canvas interface {
	// line draws through the points; dash is the length of its dashes and gaps, 0 for a line without.
	line(points []point, width, dash float64, colour color.NRGBA)
	// area fills the polygon.
	area(points []point, colour color.NRGBA)
	// disc fills a circle.
	disc(centre point, radius float64, colour color.NRGBA)
	// write puts a line of text with its baseline at the point.
	write(at point, text string, l label)
}

// align is which part of a text stands at the point it is written at.
type align int

const (
	start align = iota
	middle
	end
)

// label is how a text looks.
type label struct {
	size   float64
	colour color.NRGBA
	align  align
	upward bool // turned to the left by a right angle
}
