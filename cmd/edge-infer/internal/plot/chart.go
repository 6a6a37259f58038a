package plot

import (
	"io"

	"github.com/go-analyze/charts/chartdraw"
	"github.com/go-analyze/charts/chartdraw/drawing"
)

// Chart is a line chart with a table of its lines below it.
type Chart struct {
	Title    string
	Subtitle string // what all lines have in common
	X, Y     Axis
	// Columns are the headings of the lines' values in the table.
	Columns []string
	Lines   []Line
	Note    string // below the table
}

// Axis is an axis with its ticks in ascending order; the first and last one limit the chart.
type Axis struct {
	Label string // with the unit
	Ticks []Tick
}

// Tick is a labelled position of an axis.
type Tick struct {
	Value float64
	Label string
}

// Line is a line of a chart. Lines of the same colour number have the same colour.
type Line struct {
	Name   string // a line without a name is thin, grey and not in the table
	X, Y   []float64
	Color  int
	Dashed bool
	Bold   bool
	Dots   bool
	Values []string // in the table, one for each column
}

// Sizes in units of an SVG.
const (
	chartWidth  = 900
	chartHeight = 380 // of the axes with their labels
	margin      = 24
	header      = 94 // of title, subtitle and the label of the y axis
	rowHeight   = 20
	labelHeight = 30 // of the label of the x axis
	swatch      = 34 // width of a line in the table
	nameWidth   = 430
)

func (c *Chart) height() int {
	rows := 1 // headings
	for i := range c.Lines {
		if c.Lines[i].Name != "" {
			rows++
		}
	}
	if c.Note != "" {
		rows++
	}
	return header + chartHeight + labelHeight + rows*rowHeight + margin
}

func (c *Chart) render(f format, out io.Writer) error {
	s := f.scale
	left, right := ticks(c.Y.Ticks), ticks(c.X.Ticks)
	grid := chartdraw.Style{StrokeColor: lightGrey, StrokeWidth: float64(s)}
	axis := chartdraw.Style{
		StrokeColor: grey, StrokeWidth: float64(s), FontStyle: chartdraw.FontStyle{FontSize: textSize, FontColor: black},
	}
	chart := chartdraw.Chart{
		Width: chartWidth * s, Height: c.height() * s, DPI: float64(72 * s),
		Background: chartdraw.Style{Padding: chartdraw.Box{
			Top: header * s, Left: margin * s, Right: margin * s, Bottom: (c.height() - header - chartHeight) * s, IsSet: true,
		}},
		XAxis:          chartdraw.XAxis{Ticks: right, Style: axis, GridMajorStyle: grid, GridMinorStyle: grid},
		YAxis:          chartdraw.YAxis{Style: chartdraw.Hidden(), Range: &chartdraw.ContinuousRange{Max: 1}},
		YAxisSecondary: chartdraw.YAxis{Ticks: left, Style: axis, GridMajorStyle: grid, GridMinorStyle: grid},
	}
	for i := range c.Lines {
		line := &c.Lines[i]
		chart.Series = append(chart.Series, chartdraw.ContinuousSeries{
			YAxis: chartdraw.YAxisSecondary, XValues: line.X, YValues: line.Y, Style: line.style(s),
		})
	}
	chart.Elements = []chartdraw.Renderable{func(r chartdraw.Renderer, axes chartdraw.Box, _ chartdraw.Style) {
		p := pen{r, s}
		p.header(c.Title, c.Subtitle)
		p.text(c.Y.Label, axes.Left/s, header-14, textSize, black)
		p.centered(c.X.Label, (axes.Left+axes.Right)/2/s, header+chartHeight+labelHeight-8)
		c.table(p)
	}}
	return chart.Render(f.provide, out)
}

// table lists the lines with their values.
func (c *Chart) table(p pen) {
	y := header + chartHeight + labelHeight + rowHeight
	column := func(i int) int { // right edge
		return margin + nameWidth + (chartWidth-2*margin-nameWidth)*(i+1)/max(len(c.Columns), 1)
	}
	for i, heading := range c.Columns {
		p.ending(heading, column(i), y, smallSize)
	}
	for i := range c.Lines {
		line := &c.Lines[i]
		if line.Name == "" {
			continue
		}
		y += rowHeight
		p.line(line.style(p.scale), y-4)
		p.text(p.shortened(line.Name, textSize, nameWidth-swatch+20), margin+swatch, y, textSize, black)
		for j, value := range line.Values {
			p.ending(value, column(j), y, textSize)
		}
	}
	if c.Note != "" {
		p.text(p.shortened(c.Note, smallSize, chartWidth-2*margin), margin, y+rowHeight, smallSize, grey)
	}
}

func (l *Line) style(scale int) chartdraw.Style {
	s := float64(scale)
	style := chartdraw.Style{StrokeColor: color(l.Color), StrokeWidth: 1.75 * s}
	if l.Name == "" {
		style.StrokeColor = lightGrey
		style.StrokeWidth = s
	}
	if l.Bold {
		style.StrokeColor = black
		style.StrokeWidth = 3 * s
	}
	if l.Dashed {
		style.StrokeDashArray = []float64{6 * s, 4 * s}
	}
	if l.Dots {
		style.DotColor = style.StrokeColor
		style.DotWidth = 3 * s
	}
	return style
}

func ticks(all []Tick) []chartdraw.Tick {
	converted := make([]chartdraw.Tick, len(all))
	for i, t := range all {
		converted[i] = chartdraw.Tick{Value: t.Value, Label: t.Label}
	}
	return converted
}

// color returns the color with a number: ten that differ well, then the same ones darker and lighter.
func color(number int) drawing.Color {
	palette := []string{"1f77b4", "d95f02", "2ca02c", "c51b7d", "7b4fb3", "8c564b", "17a2b8", "a6a000", "e6a100", "444444"}
	round := number / len(palette)
	shades := []float64{0, -0.15, 0.15}
	return drawing.ColorFromHex(palette[number%len(palette)]).WithAdjustHSL(0, 0, shades[round%len(shades)])
}
