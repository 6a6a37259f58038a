package plot

import (
	"io"
	"math"
	"strconv"

	"github.com/go-analyze/charts/chartdraw/drawing"
)

// Matrix is a table of counts. The color of a cell is its share of the row.
type Matrix struct {
	Title, Subtitle string
	Rows, Columns   string // what the names of rows and columns are
	Names           []string
	Counts          [][]int // by row and column
}

const (
	rowNames    = 150 // width
	columnNames = 130 // height, with their label
	smallest    = 16  // side of a cell
	numberSide  = 30  // smallest cell with a number
)

// cell returns the side of a cell.
func (m *Matrix) cell() int {
	return min(90, max(smallest, (chartWidth-2*margin-rowNames-24)/len(m.Names)))
}

// size returns the size of the drawing; names of columns are upright below it.
func (m *Matrix) size() (width, height int) {
	side := m.cell() * len(m.Names)
	return max(chartWidth, 2*margin+rowNames+24+side), header + side + columnNames + margin
}

func (m *Matrix) render(f format, out io.Writer) error {
	width, height := m.size()
	r := f.provide(width*f.scale, height*f.scale)
	r.SetDPI(float64(72 * f.scale))
	p := pen{r, f.scale}
	p.box(0, 0, width, height, white)
	p.header(m.Title, m.Subtitle)
	side := m.cell()
	left, top := margin+24+rowNames, header
	bottom := top + side*len(m.Names)
	text := float64(min(textSize, side-4))
	for i, name := range m.Names {
		middle := i*side + side/2
		p.ending(p.shortened(name, text, rowNames-12), left-8, top+middle+4, text)
		shown := p.shortened(name, text, columnNames-40)
		p.upright(shown, left+middle+4, bottom+10+p.measure(shown), text)
	}
	p.font(textSize, black) // to be measured
	p.upright(m.Rows, margin, top+side*len(m.Names)/2+p.measure(m.Rows)/2, textSize)
	p.centered(m.Columns, left+side*len(m.Names)/2, height-margin)
	for i, row := range m.Counts {
		total := 0
		for _, count := range row {
			total += count
		}
		for j, count := range row {
			share := float64(count) / math.Max(1, float64(total))
			x, y := left+j*side, top+i*side
			p.box(x, y, x+side, y+side, shade(share))
			m.number(p, count, share, x, y)
		}
	}
	return r.Save(out)
}

// number writes the count of a cell if it is not 0 and there is room.
func (m *Matrix) number(p pen, count int, share float64, x, y int) {
	side := m.cell()
	if count == 0 || side < numberSide {
		return
	}
	ink := black
	if share > 0.5 {
		ink = white
	}
	label := strconv.Itoa(count)
	size := float64(textSize)
	for p.font(size, ink); p.measure(label) > side-4 && size > 6; p.font(size, ink) {
		size--
	}
	p.text(label, x+(side-p.measure(label))/2, y+side/2+4, size, ink)
}

// shade returns a blue that is darker for larger shares.
func shade(share float64) drawing.Color {
	mix := func(light, dark float64) uint8 { return uint8(light + (dark-light)*share) }
	return drawing.Color{R: mix(242, 8), G: mix(245, 69), B: mix(249, 148), A: 255}
}
