package jpegimage

import (
	"image"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// What is hidden becomes a mosaic that cannot be undone: an object is at most 4 cells long, a region at most 16 on the whole image, and a
// cell has one of 16 levels per colour. The cells are powers of two wide and stand still in the image, so that the images of a moving
// object do not add up to a finer one.
const (
	objectCells   = 4  // along the longer side of an object
	smallestCells = 64 // along the longer side of the image, for small objects
	regionCells   = 16 // along the longer side of the image, in regions
	levelBits     = 4  // of a cell's colour
)

// mosaic paints over what is hidden in pixels of 1 or 3 bytes. One goroutine uses it.
type mosaic struct {
	outline   []zone.Point // in pixels
	crossings []float64
	colours   []byte // of the cells of a shape, row by row
}

// apply paints over the hidden part of an image whose pixels were converted to channels bytes each.
func (m *mosaic) apply(data []byte, channels int, p *Pixels) {
	longer := max(p.frame.X, p.frame.Y)
	for _, region := range p.regions {
		m.outline = m.outline[:0]
		for _, point := range region {
			m.outline = append(m.outline, zone.Point{
				X: point.X*float64(p.frame.X) - float64(p.origin.X), Y: point.Y*float64(p.frame.Y) - float64(p.origin.Y),
			})
		}
		m.paint(data, channels, p, cell(longer, regionCells))
	}
	for _, b := range p.boxes {
		size := max(cell(int(max(b.Width(), b.Height())), objectCells), cell(longer, smallestCells))
		m.outline = boxOutline(m.outline[:0], b, p.origin)
		m.paint(data, channels, p, size)
	}
}

// boxOutline appends the corners of a box.
func boxOutline(to []zone.Point, b postprocess.Box, origin image.Point) []zone.Point {
	x1, y1 := float64(b.X1)-float64(origin.X), float64(b.Y1)-float64(origin.Y)
	x2, y2 := float64(b.X2)-float64(origin.X), float64(b.Y2)-float64(origin.Y)
	return append(to, zone.Point{X: x1, Y: y1}, zone.Point{X: x2, Y: y1}, zone.Point{X: x2, Y: y2}, zone.Point{X: x1, Y: y2})
}

// cell returns the side of cells of which a length has at most count: a power of two.
func cell(length, count int) int {
	size := 1
	for size*count < length {
		size *= 2
	}
	return size
}

// paint replaces the pixels inside m.outline by the average of their cell.
func (m *mosaic) paint(data []byte, channels int, p *Pixels, size int) {
	bounds := m.bounds().Intersect(image.Rect(0, 0, p.Width, p.Height))
	if bounds.Empty() {
		return
	}
	// The cells that the shape touches, in the frame's grid.
	first := bounds.Min.Add(p.origin).Div(size)
	last := bounds.Max.Add(p.origin).Sub(image.Pt(1, 1)).Div(size)
	cells := image.Rectangle{Min: first, Max: last.Add(image.Pt(1, 1))}
	m.average(data, channels, p, size, cells)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		row := m.colours[((p.origin.Y+y)/size-first.Y)*cells.Dx()*channels:]
		m.cross(float64(y))
		for i := 0; i+1 < len(m.crossings); i += 2 {
			from, to := max(int(m.crossings[i])-1, bounds.Min.X), min(int(math.Ceil(m.crossings[i+1]))+1, bounds.Max.X)
			for from < to {
				column := (p.origin.X + from) / size
				end := min((column+1)*size-p.origin.X, to)
				fill(data[(y*p.Width+from)*channels:(y*p.Width+end)*channels], row[(column-first.X)*channels:][:channels])
				from = end
			}
		}
	}
}

// average sets m.colours to the colours of cells.
func (m *mosaic) average(data []byte, channels int, p *Pixels, size int, cells image.Rectangle) {
	m.colours = m.colours[:0]
	for cy := cells.Min.Y; cy < cells.Max.Y; cy++ {
		for cx := cells.Min.X; cx < cells.Max.X; cx++ {
			area := image.Rect(cx*size, cy*size, (cx+1)*size, (cy+1)*size).Sub(p.origin).Intersect(image.Rect(0, 0, p.Width, p.Height))
			var sums [3]int
			for y := area.Min.Y; y < area.Max.Y; y++ {
				row := data[(y*p.Width+area.Min.X)*channels : (y*p.Width+area.Max.X)*channels]
				if channels == 1 {
					for _, v := range row {
						sums[0] += int(v)
					}
					continue
				}
				for ; len(row) >= 3; row = row[3:] {
					sums[0] += int(row[0])
					sums[1] += int(row[1])
					sums[2] += int(row[2])
				}
			}
			for c := range channels {
				level := sums[c] / max(area.Dx()*area.Dy(), 1) >> (8 - levelBits)
				m.colours = append(m.colours, byte(level<<(8-levelBits)|1<<(7-levelBits)))
			}
		}
	}
}

// fill repeats a colour.
func fill(to, colour []byte) {
	n := copy(to, colour)
	for n < len(to) {
		n += copy(to[n:], to[:n])
	}
}

// bounds returns the pixels that m.outline touches, and one more on every side.
func (m *mosaic) bounds() image.Rectangle {
	low, high := m.outline[0], m.outline[0]
	for _, p := range m.outline {
		low = zone.Point{X: min(low.X, p.X), Y: min(low.Y, p.Y)}
		high = zone.Point{X: max(high.X, p.X), Y: max(high.Y, p.Y)}
	}
	const most = 1 << 20 // boxes may be anywhere
	limit := func(v float64) int { return int(min(max(v, -most), most)) }
	return image.Rect(limit(low.X)-1, limit(low.Y)-1, limit(high.X)+2, limit(high.Y)+2)
}

// cross sets m.crossings to pairs of where the shape begins and ends in a row of pixels, above, in and below its middle, so that a pixel
// that the shape touches is inside.
func (m *mosaic) cross(row float64) {
	m.crossings = m.crossings[:0]
	for _, y := range [3]float64{row - 0.999, row + 0.5, row + 1.999} {
		first := len(m.crossings)
		for i, a := range m.outline {
			b := m.outline[(i+1)%len(m.outline)]
			if (a.Y <= y) != (b.Y <= y) {
				m.crossings = append(m.crossings, a.X+(y-a.Y)*(b.X-a.X)/(b.Y-a.Y))
			}
		}
		slices.Sort(m.crossings[first:])
	}
}
