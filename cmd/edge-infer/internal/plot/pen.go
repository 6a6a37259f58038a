package plot

import (
	"math"

	"github.com/go-analyze/charts/chartdraw"
	"github.com/go-analyze/charts/chartdraw/drawing"
)

// Sizes of text in units of an SVG.
const (
	titleSize = 17
	textSize  = 12
	smallSize = 11
)

var (
	black     = drawing.Color{R: 30, G: 30, B: 30, A: 255}
	grey      = drawing.Color{R: 110, G: 110, B: 110, A: 255}
	lightGrey = drawing.Color{R: 222, G: 222, B: 222, A: 255}
	white     = drawing.Color{R: 255, G: 255, B: 255, A: 255}
)

// pen draws in units of an SVG.
type pen struct {
	r     chartdraw.Renderer
	scale int
}

// header writes the title and what is below it.
func (p pen) header(title, subtitle string) {
	const width = chartWidth - 2*margin
	p.text(p.shortened(title, titleSize, width), margin, 32, titleSize, black)
	p.text(p.shortened(subtitle, textSize, width), margin, 53, textSize, grey)
}

func (p pen) font(size float64, c drawing.Color) {
	p.r.ResetStyle()
	p.r.SetFont(chartdraw.GetDefaultFont())
	p.r.SetFontSize(size)
	p.r.SetFontColor(c)
}

// measure returns the width of a text in the font that is set.
func (p pen) measure(text string) int { return p.r.MeasureText(text).Width() / p.scale }

func (p pen) text(text string, x, y int, size float64, c drawing.Color) {
	p.font(size, c)
	p.r.Text(text, x*p.scale, y*p.scale)
}

// centered writes a text around x.
func (p pen) centered(text string, x, y int) {
	p.font(textSize, black)
	p.text(text, x-p.measure(text)/2, y, textSize, black)
}

// ending writes a text that ends at x.
func (p pen) ending(text string, x, y int, size float64) {
	p.font(size, black)
	p.text(text, x-p.measure(text), y, size, black)
}

// shortened returns a text without its end if it is wider than the width.
func (p pen) shortened(text string, size float64, width int) string {
	p.font(size, black)
	runes := []rune(text)
	for shown := text; ; shown = string(runes) + "..." {
		if len(runes) == 0 || p.measure(shown) <= width {
			return shown
		}
		runes = runes[:len(runes)-1]
	}
}

// upright writes a text from y upwards.
func (p pen) upright(text string, x, y int, size float64) {
	p.font(size, black)
	p.r.SetTextRotation(-math.Pi / 2)
	p.r.Text(text, x*p.scale, y*p.scale)
	p.r.ClearTextRotation()
}

// line draws a horizontal line at the left margin.
func (p pen) line(style chartdraw.Style, y int) {
	p.r.ResetStyle()
	style.GetStrokeOptions().WriteDrawingOptionsToRenderer(p.r)
	p.r.MoveTo(margin*p.scale, y*p.scale)
	p.r.LineTo((margin+swatch-8)*p.scale, y*p.scale)
	p.r.Stroke()
}

func (p pen) box(left, top, right, bottom int, fill drawing.Color) {
	p.r.ResetStyle()
	chartdraw.Draw.Box(p.r, chartdraw.Box{
		Left: left * p.scale, Top: top * p.scale, Right: right * p.scale, Bottom: bottom * p.scale, IsSet: true,
	}, chartdraw.Style{FillColor: fill, StrokeColor: white, StrokeWidth: float64(p.scale)})
}
