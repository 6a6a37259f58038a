package plot

import (
	"fmt"
	"image/color"
	"math"
)

// Style is how a series is drawn.
type Style int

// The styles.
const (
	Line Style = iota
	Dashed
	Points
	Marked    // a line with a disc at every point, for few measurements
	Reference // thin and grey, without a colour of the palette: a diagonal, a bound
)

// Series is a sequence of points. A point with a NaN breaks the line.
type Series struct {
	Name  string // in the legend; empty leaves it out
	X, Y  []float64
	Style Style
	Bold  bool // wider than the others, as the mean of many
}

// Chart is a panel of series over two axes.
type Chart struct {
	Title  string
	X, Y   Axis
	Series []Series
}

const (
	chartWidth, chartHeight = 440.0, 380.0
	legendMost              = 20 // entries of a legend; more names than that say nothing
	legendInside            = 5  // entries that fit into the chart itself
)

// entry is a line of the legend.
type entry struct {
	series Series
	colour color.NRGBA
}

// coloured gives the series their colours; after a round through the palette full lines become dashed, so that neighbours differ.
func (c *Chart) coloured() (all []entry) {
	next := 0
	for _, s := range c.Series {
		if s.Style == Reference {
			all = append(all, entry{s, faint})
			continue
		}
		if s.Style == Line && next/len(palette)%2 == 1 {
			s.Style = Dashed
		}
		all = append(all, entry{s, palette[next%len(palette)]})
		next++
	}
	return all
}

// legend are the series with names.
func legend(all []entry) (named []entry, rest int) {
	for _, e := range all {
		if e.series.Name != "" {
			named = append(named, e)
		}
	}
	if len(named) > legendMost {
		return named[:legendMost], len(named) - legendMost
	}
	return named, 0
}

const legendLine = 1.45 * textSize

// legendSize is what the legend takes, frame included.
func legendSize(named []entry, rest int) (width, height float64) {
	for _, e := range named {
		width = max(width, textWidth(e.series.Name, textSize))
	}
	lines := len(named)
	if rest > 0 {
		width, lines = max(width, textWidth(more(rest), textSize)), lines+1
	}
	return 1.1*width + 40, legendLine*float64(lines) + 10 // a reader's font may be a little wider
}

func more(rest int) string { return fmt.Sprintf("and %d more", rest) }

func (c *Chart) size() (width, height float64) {
	width, height = chartWidth, chartHeight
	if named, rest := legend(c.coloured()); len(named) > legendInside {
		w, h := legendSize(named, rest)
		width, height = width+gap+w, max(height, h+4*textSize)
	}
	return width, height
}

func (c *Chart) draw(out canvas, r rectangle) {
	all := c.coloured()
	named, rest := legend(all)
	x := c.X.span(c.Series, func(s Series) []float64 { return s.X })
	y := c.Y.span(c.Series, func(s Series) []float64 { return s.Y })
	legendWidth, legendHeight := legendSize(named, rest)
	inside := len(named) <= legendInside

	_, height := c.size() // not that of a panel beside it
	frame := rectangle{r.left, r.top + headSpace(c.Title), r.right - 6, r.top + height - 3.4*textSize}
	if !inside {
		frame.right -= gap + legendWidth
	}
	rows := y.ticks(frame.height() / 42)
	widest := 0.0
	for _, t := range rows {
		widest = max(widest, textWidth(t.text, textSize))
	}
	frame.left += 1.8*textSize + widest + 6
	columns := x.ticks(frame.width() / 62)

	out.write(point{(frame.left + frame.right) / 2, r.top + headSize}, c.Title, label{size: headSize, colour: ink, align: middle})
	axes(out, frame, x, y, columns, rows)
	out.write(point{(frame.left + frame.right) / 2, frame.bottom + 2.9*textSize}, x.Label, label{size: textSize, colour: ink, align: middle})
	out.write(point{r.left + textSize, (frame.top + frame.bottom) / 2}, y.Label,
		label{size: textSize, colour: ink, align: middle, upward: true})

	var drawn []point
	for _, e := range all {
		drawn = append(drawn, plotted(out, e, x, y, frame)...)
	}
	out.line(append(frame.corners(), point{frame.left, frame.top}), 1, 0, faint)
	if len(named) == 0 {
		return
	}
	box := rectangle{frame.right + gap, frame.top, frame.right + gap + legendWidth, frame.top + legendHeight}
	if inside {
		box = emptiest(frame, legendWidth, legendHeight, drawn)
	}
	key(out, box, named, rest)
}

// axes draws the grid and its numbers.
func axes(out canvas, frame rectangle, x, y Axis, columns, rows []tick) {
	for _, t := range columns {
		at := x.place(t.value, frame.left, frame.right)
		out.line([]point{{at, frame.top}, {at, frame.bottom}}, 1, 0, grid)
		out.write(point{at, frame.bottom + 1.4*textSize}, t.text, label{size: textSize, colour: ink, align: middle})
	}
	for _, t := range rows {
		at := y.place(t.value, frame.bottom, frame.top)
		out.line([]point{{frame.left, at}, {frame.right, at}}, 1, 0, grid)
		out.write(point{frame.left - 6, at + 0.35*textSize}, t.text, label{size: textSize, colour: ink, align: end})
	}
}

// plotted draws one series and gives where it is seen. What lies outside the axes is left out.
func plotted(out canvas, e entry, x, y Axis, frame rectangle) (drawn []point) {
	width := 1.6
	switch {
	case e.series.Bold:
		width = 3
	case e.series.Style == Reference:
		width = 1
	}
	var piece []point
	flush := func() {
		if len(piece) > 1 && e.series.Style != Points {
			dash := 0.0
			if e.series.Style == Dashed {
				dash = 5
			}
			out.line(piece, width, dash, e.colour)
		}
		piece = nil
	}
	for i := range min(len(e.series.X), len(e.series.Y)) {
		u, v := e.series.X[i], e.series.Y[i]
		if math.IsNaN(u) || math.IsNaN(v) || u < x.Min || u > x.Max || v < y.Min || v > y.Max {
			flush()
			continue
		}
		p := point{x.place(u, frame.left, frame.right), y.place(v, frame.bottom, frame.top)}
		switch e.series.Style {
		case Points:
			out.disc(p, 1.6, e.colour)
		case Marked:
			out.disc(p, 3.2, e.colour)
		}
		piece = append(piece, p)
		drawn = append(drawn, p)
	}
	flush()
	return along(drawn, e.series.Style)
}

// along adds points between those of a line, so that a long piece of it counts for more than its two ends.
func along(points []point, style Style) []point {
	const every = 8.0
	if style == Points {
		return points
	}
	all := points
	for i := 1; i < len(points); i++ {
		a, b := points[i-1], points[i]
		steps := math.Floor(math.Hypot(b.x-a.x, b.y-a.y) / every)
		for k := 1.0; k < steps; k++ {
			all = append(all, point{a.x + (b.x-a.x)*k/steps, a.y + (b.y-a.y)*k/steps})
		}
	}
	return all
}

// emptiest is the corner of the frame in which a box covers the fewest points, the upper right one first.
func emptiest(frame rectangle, width, height float64, drawn []point) (best rectangle) {
	const off = 8.0
	fewest := math.MaxInt
	for _, corner := range []point{
		{frame.right - off - width, frame.top + off},
		{frame.left + off, frame.bottom - off - height},
		{frame.right - off - width, frame.bottom - off - height},
		{frame.left + off, frame.top + off},
	} {
		box := rectangle{corner.x, corner.y, corner.x + width, corner.y + height}
		covered := 0
		for _, p := range drawn {
			if p.x >= box.left && p.x <= box.right && p.y >= box.top && p.y <= box.bottom {
				covered++
			}
		}
		if covered < fewest {
			fewest, best = covered, box
		}
	}
	return best
}

// key draws the legend.
func key(out canvas, box rectangle, named []entry, rest int) {
	out.area(box.corners(), paper)
	out.line(append(box.corners(), point{box.left, box.top}), 1, 0, grid)
	for i, e := range named {
		at := box.top + 5 + legendLine*(float64(i)+0.5)
		sample := []point{{box.left + 8, at}, {box.left + 28, at}}
		switch e.series.Style {
		case Points:
			out.disc(point{box.left + 18, at}, 2.6, e.colour)
		case Marked:
			out.disc(point{box.left + 18, at}, 3.2, e.colour)
			out.line(sample, 1.6, 0, e.colour)
		case Dashed:
			out.line(sample, 1.6, 5, e.colour)
		default:
			out.line(sample, 1.6, 0, e.colour)
		}
		out.write(point{box.left + 34, at + 0.35*textSize}, e.series.Name, label{size: textSize, colour: ink})
	}
	if rest > 0 {
		at := box.top + 5 + legendLine*(float64(len(named))+0.85)
		out.write(point{box.left + 34, at}, more(rest), label{size: textSize, colour: faint})
	}
}
