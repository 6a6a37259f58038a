package postprocess

import (
	"fmt"
	"image"
)

// Mask is the shape of an object on the source image: a grid of the network's logits, coarser than the image. A pixel belongs to the object
// if the logit at its position is over 0, interpolated bilinearly and extended beyond the border.
type Mask struct {
	// Bounds is the rectangle that the mask is cut to: the object's box, or all of its pixels for networks that do not cut it. No pixel
	// outside belongs to the object.
	Bounds image.Rectangle
	// Width and Height are the grid's columns and rows; Logits is stored row by row.
	Width, Height int
	Logits        []float32
	// The centre of pixel x, y is at column X + x*StepX and row Y + y*StepY of the grid.
	X, Y, StepX, StepY float32

	// Runs holds the pixels of a rasterized mask.
	Runs Runs
}

// Rasterize replaces the grid by its pixels on an image of the given size, which take less memory. After that only AppendRuns for the same
// image may be used.
func (m *Mask) Rasterize(width, height int) {
	m.Runs = m.AppendRuns(nil, width, height)
	m.Logits = nil
}

// Valid reports whether the grid is consistent; other methods need a valid mask.
func (m *Mask) Valid() bool {
	return m.Width > 0 && m.Height > 0 && len(m.Logits) == m.Width*m.Height && m.StepX > 0 && m.StepY > 0 && m.X-m.X == 0 && m.Y-m.Y == 0
}

// Runs are COCO's uncompressed run lengths: the numbers of pixels outside and inside the object, alternating, column by column of the
// image. The first run is outside and may be 0.
type Runs []uint32

// AppendRuns appends the runs of the mask on an image of the given size. It allocates nothing if dst has room.
func (m *Mask) AppendRuns(dst Runs, width, height int) Runs {
	if m.Runs != nil {
		return append(dst, m.Runs...)
	}
	w := runWriter{runs: dst}
	bounds := m.Bounds.Intersect(image.Rect(0, 0, width, height))
	if bounds.Empty() || !m.Valid() {
		w.add(false, width*height)
		return w.end()
	}
	var room [512]float32 // on the stack, enough for usual networks
	column := room[:]
	if m.Height > len(column) {
		column = make([]float32, m.Height)
	}
	column = column[:m.Height]
	w.add(false, bounds.Min.X*height)
	for x := bounds.Min.X; x < bounds.Max.X; x++ {
		m.column(column, x)
		w.add(false, bounds.Min.Y)
		m.cross(column, bounds.Min.Y, bounds.Max.Y, &w)
		w.add(false, height-bounds.Max.Y)
	}
	w.add(false, (width-bounds.Max.X)*height)
	return w.end()
}

// column interpolates the grid at a column of pixels.
func (m *Mask) column(to []float32, x int) {
	left, part := between(m.X+float32(x)*m.StepX, m.Width)
	right := min(left+1, m.Width-1)
	for row := range to {
		from := m.Logits[row*m.Width : (row+1)*m.Width]
		to[row] = from[left] + (from[right]-from[left])*part
	}
}

// cross appends the pixels of a column from one row to another. Between two grid points of the same sign all pixels have that sign.
func (m *Mask) cross(column []float32, from, to int, w *runWriter) {
	for y := from; y < to; {
		above, _ := between(m.Y+float32(y)*m.StepY, m.Height)
		end := to
		if above < m.Height-2 {
			end = min(max(y+1, ceil((float32(above+1)-m.Y)/m.StepY)), to)
		}
		a, b := column[above], column[min(above+1, m.Height-1)]
		switch {
		case a > 0 && b > 0:
			w.add(true, end-y)
		case a <= 0 && b <= 0:
			w.add(false, end-y)
		default:
			for ; y < end; y++ {
				_, part := between(m.Y+float32(y)*m.StepY, m.Height)
				w.add(a+(b-a)*part > 0, 1)
			}
		}
		y = end
	}
}

// between returns the grid point before a position and the distance behind it, 0 to 1.
func between(place float32, points int) (before int, part float32) {
	place = min(max(place, 0), float32(points-1))
	before = min(int(place), max(points-2, 0))
	return before, place - float32(before)
}

func ceil(v float32) int {
	n := int(v)
	if float32(n) < v {
		n++
	}
	return n
}

// runWriter merges consecutive runs of the same kind.
type runWriter struct {
	runs   Runs
	inside bool
	length uint32
}

func (w *runWriter) add(inside bool, length int) {
	if length <= 0 {
		return
	}
	if inside != w.inside {
		w.runs = append(w.runs, w.length)
		w.inside, w.length = inside, 0
	}
	w.length += uint32(length)
}

func (w *runWriter) end() Runs { return append(w.runs, w.length) }

// Area returns the number of pixels of the object.
func (r Runs) Area() (pixels int) {
	for i := 1; i < len(r); i += 2 {
		pixels += int(r[i])
	}
	return pixels
}

// IoU returns the intersection over union of two objects on images of the same size. With crowd it is the share of r inside other.
func (r Runs) IoU(other Runs, crowd bool) float64 {
	shared, own, others := 0, 0, 0
	i, j := 0, 0
	var left, right uint32
	if len(r) > 0 && len(other) > 0 {
		left, right = r[0], other[0]
	}
	for i < len(r) && j < len(other) {
		step := min(left, right)
		if i&j&1 == 1 {
			shared += int(step)
		}
		left, right = left-step, right-step
		for left == 0 && i < len(r) {
			i++
			if i < len(r) {
				left = r[i]
			}
		}
		for right == 0 && j < len(other) {
			j++
			if j < len(other) {
				right = other[j]
			}
		}
	}
	own, others = r.Area(), other.Area()
	union := own + others - shared
	if crowd {
		union = own
	}
	if union == 0 {
		return 0
	}
	return float64(shared) / float64(union)
}

// AppendCounts appends the runs in COCO's compressed form: each as the difference to the previous run of its kind, in groups of five bits
// as letters. It is ASCII and may contain backslashes.
func (r Runs) AppendCounts(dst []byte) []byte {
	for i := range r {
		value := int64(r[i])
		if i > 2 {
			value -= int64(r[i-2])
		}
		for more := true; more; {
			group := byte(value & 0x1f)
			value >>= 5
			more = value != 0
			if group&0x10 != 0 {
				more = value != -1
			}
			if more {
				group |= 0x20
			}
			dst = append(dst, group+'0')
		}
	}
	return dst
}

// Smooth removes runs of fewer than least pixels in place and merges their neighbours. The first run and the sum are kept.
func (r Runs) Smooth(least uint32) Runs {
	if len(r) == 0 {
		return r
	}
	kept := r[:1]
	for i := 1; i < len(r); i++ {
		last := len(kept) - 1
		switch {
		case (i-last)&1 == 0: // same kind as the last one kept, after a removed run
			kept[last] += r[i]
		case r[i] < least:
			kept[last] += r[i]
		default:
			kept = append(kept, r[i])
		}
	}
	return kept
}

// ParseCounts parses the output of AppendCounts.
func ParseCounts(text []byte) (Runs, error) {
	const most = 1 << 30 // pixels per image
	var runs Runs
	for i := 0; i < len(text); {
		value, shift := int64(0), 0
		for more := true; more; i++ {
			if i == len(text) || text[i] < '0' || text[i] > '0'+0x3f || shift > 35 {
				return nil, fmt.Errorf("run %d of the counts is none", len(runs))
			}
			group := int64(text[i] - '0')
			value |= group & 0x1f << shift
			shift += 5
			more = group&0x20 != 0
			if !more && group&0x10 != 0 {
				value |= -1 << shift
			}
		}
		if n := len(runs); n > 2 {
			value += int64(runs[n-2])
		}
		if value < 0 || value > most {
			return nil, fmt.Errorf("run %d of the counts has %d pixels", len(runs), value)
		}
		runs = append(runs, uint32(value))
	}
	return runs, nil
}
