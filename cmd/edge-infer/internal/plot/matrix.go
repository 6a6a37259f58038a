package plot

import (
	"image/color"
	"math"
)

// Matrix is a panel of numbers in cells, the darker the larger.
type Matrix struct {
	Title                 string
	RowLabel, ColumnLabel string
	Rows, Columns         []string
	Values                [][]float64 // by row, not negative; a cell of 0, NaN or infinity stays empty
	// Decimals are those of the numbers in the cells.
	Decimals int
	// ByRow measures a cell's darkness against its row's sum, as in a confusion matrix, not against the largest number.
	ByRow bool
}

const (
	cellMost, cellLeast = 46.0, 9.0
	cellText            = 20.0 // the least width of a cell that has its number written in it
)

// layout is where a matrix has what, in points.
type layout struct {
	cell              float64 // side of a cell, smaller in a large matrix
	names             float64 // size of the rows' and columns' names
	upright           bool    // columns are named across their cells, else upward
	left, top, bottom float64 // what stands beside the cells, above and below them
}

func (m *Matrix) layout() layout {
	l := layout{cell: min(cellMost, max(cellLeast, 420/float64(max(len(m.Rows), len(m.Columns), 1)))), top: headSpace(m.Title)}
	l.names = min(textSize, l.cell-1)
	widest := func(names []string) (width float64) {
		for _, name := range names {
			width = max(width, textWidth(name, l.names))
		}
		return width
	}
	l.left = 1.8*textSize + widest(m.Rows) + 8
	below := widest(m.Columns)
	if l.upright = below <= l.cell-4; l.upright {
		below = l.names
	}
	l.bottom = below + 8 + 2.2*textSize
	return l
}

func (m *Matrix) size() (width, height float64) {
	l := m.layout()
	width = l.left + l.cell*float64(len(m.Columns)) + 6
	return max(width, textWidth(m.Title, headSize)), l.top + l.cell*float64(len(m.Rows)) + l.bottom
}

func (m *Matrix) draw(out canvas, r rectangle) {
	l := m.layout()
	frame := rectangle{left: r.left + l.left, top: r.top + l.top}
	frame.right, frame.bottom = frame.left+l.cell*float64(len(m.Columns)), frame.top+l.cell*float64(len(m.Rows))
	m.cells(out, frame, l.cell)
	out.line(append(frame.corners(), point{frame.left, frame.top}), 1, 0, faint)
	for i, name := range m.Rows {
		at := point{frame.left - 6, frame.top + l.cell*(float64(i)+0.5) + 0.35*l.names}
		out.write(at, name, label{size: l.names, colour: ink, align: end})
	}
	for i, name := range m.Columns {
		x := frame.left + l.cell*(float64(i)+0.5)
		if l.upright {
			out.write(point{x, frame.bottom + 4 + l.names}, name, label{size: l.names, colour: ink, align: middle})
		} else {
			out.write(point{x + 0.35*l.names, frame.bottom + 6}, name, label{size: l.names, colour: ink, align: end, upward: true})
		}
	}
	centre := point{(frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2}
	out.write(point{centre.x, r.top + headSize}, m.Title, label{size: headSize, colour: ink, align: middle})
	out.write(point{centre.x, frame.bottom + l.bottom - 0.4*textSize}, m.ColumnLabel, label{size: textSize, colour: ink, align: middle})
	out.write(point{r.left + textSize, centre.y}, m.RowLabel, label{size: textSize, colour: ink, align: middle, upward: true})
}

// cells draws the cells that are not empty, over a ground of the lightest shade.
func (m *Matrix) cells(out canvas, frame rectangle, cell float64) {
	out.area(frame.corners(), shade(0))
	for row := range m.Values {
		full := m.full(row)
		for column, v := range m.Values[row] {
			if !shown(v) {
				continue
			}
			x, y, share := frame.left+cell*float64(column), frame.top+cell*float64(row), min(1, v/full)
			out.area(rectangle{x, y, x + cell, y + cell}.corners(), shade(share))
			if cell < cellText {
				continue
			}
			text := digits(v, m.Decimals)
			letters := min(textSize, textSize*(cell-4)/textWidth(text, textSize))
			colour := ink
			if share > 0.5 {
				colour = paper
			}
			out.write(point{x + cell/2, y + cell/2 + 0.35*letters}, text, label{size: letters, colour: colour, align: middle})
		}
	}
}

// shown reports whether a number has a cell.
func shown(v float64) bool { return v > 0 && !math.IsInf(v, 0) }

// full is the number that is drawn darkest in a row.
func (m *Matrix) full(row int) (full float64) {
	if m.ByRow {
		for _, v := range m.Values[row] {
			if shown(v) {
				full += v
			}
		}
		return full
	}
	for _, values := range m.Values {
		for _, v := range values {
			if shown(v) {
				full = max(full, v)
			}
		}
	}
	return full
}

// shade is a blue that gets darker from 0 to 1.
func shade(share float64) color.NRGBA {
	light, dark := color.NRGBA{247, 251, 255, 255}, color.NRGBA{8, 64, 129, 255}
	mix := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + (float64(b)-float64(a))*share)) }
	return color.NRGBA{mix(light.R, dark.R), mix(light.G, dark.G), mix(light.B, dark.B), 255}
}
