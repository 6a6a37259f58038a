package postprocess

import (
	"fmt"
	"image"
)

// Mask is the shape of an object on the source image: a grid of log odds that the network gave, coarser than the image. A pixel belongs
// to the object when the grid is over 0 at its place, bilinearly between the grid's points and as its border beyond them.
type Mask struct {
	// Bounds are the pixels that the mask was cut to: its box, or where all of it lies for a network that does not cut it. No pixel outside
	// belongs to the object.
	Bounds image.Rectangle
	// Width and Height are the grid's columns and rows, Logits its rows one after the other.
	Width, Height int
	Logits        []float32
	// The centre of pixel x, y lies at column X + x*StepX and row Y + y*StepY of the grid.
	X, Y, StepX, StepY float32

	// Runs are the runs of a mask of which Draw has kept no more.
	Runs Runs
}

// Draw turns the mask into its pixels on an image of that size, for one that is kept: they take less room than the grid. AppendRuns for
// that image is all that it can do then.
func (m *Mask) Rasterize(width, height int) {
	m.Runs = m.AppendRuns(nil, width, height)
	m.Logits = nil
}

// Valid reports whether the grid is one: all that a mask is asked holds for sane ones alone.
func (m *Mask) Valid() bool {
	return m.Width > 0 && m.Height > 0 && len(m.Logits) == m.Width*m.Height && m.StepX > 0 && m.StepY > 0 && m.X-m.X == 0 && m.Y-m.Y == 0
}

// Runs are the lengths of what does and does not belong to an object, by turns, column after column of the image. The first run does
// not, and may be empty. They are COCO's uncompressed counts.
type Runs []uint32

// AppendRuns appends the runs of the mask on an image of that size to dst, which allocates nothing where it has room.
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
	var room [512]float32 // as many rows as the networks have, on the stack
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

// column is the grid at a column of pixels.
func (m *Mask) column(to []float32, x int) {
	left, part := between(m.X+float32(x)*m.StepX, m.Width)
	right := min(left+1, m.Width-1)
	for row := range to {
		from := m.Logits[row*m.Width : (row+1)*m.Width]
		to[row] = from[left] + (from[right]-from[left])*part
	}
}

// cross writes the pixels of a column from one row to another. Between two points of the grid with the same sign every pixel has it.
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

// between is the point of the grid before a place, and how far behind it that is, 0 to 1. There are so many points.
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

// runWriter joins runs of the same kind.
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

// Area is the number of pixels that belong to the object.
func (r Runs) Area() (pixels int) {
	for i := 1; i < len(r); i += 2 {
		pixels += int(r[i])
	}
	return pixels
}

// IoU is the intersection over the union of two objects on images of the same size. With crowd it is the part of r that lies in other.
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
			if i++; i < len(r) {
				left = r[i]
			}
		}
		for right == 0 && j < len(other) {
			if j++; j < len(other) {
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

// AppendCounts appends the runs as COCO writes them compressed: each as its difference to the one of the same kind before, in groups of
// five bits as letters. It is ASCII and may hold a backslash.
func (r Runs) AppendCounts(dst []byte) []byte {
	for i := range r {
		value := int64(r[i])
		if i > 2 {
			value -= int64(r[i-2])
		}
		for more := true; more; {
			group := byte(value & 0x1f)
			value >>= 5
			if more = value != 0; group&0x10 != 0 {
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

// Smooth takes runs shorter than that many pixels out of r, in place: what lies between two of a kind becomes of that kind. The first run
// stays, and so does the sum.
func (r Runs) Smooth(least uint32) Runs {
	if len(r) == 0 {
		return r
	}
	kept := r[:1]
	for i := 1; i < len(r); i++ {
		last := len(kept) - 1
		switch {
		case (i-last)&1 == 0: // of the kind of the last one kept, the run between them was taken out
			kept[last] += r[i]
		case r[i] < least:
			kept[last] += r[i]
		default:
			kept = append(kept, r[i])
		}
	}
	return kept
}

// ParseCounts reads what AppendCounts writes.
func ParseCounts(text []byte) (Runs, error) {
	const most = 1 << 30 // pixels of an image
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
			if more = group&0x20 != 0; !more && group&0x10 != 0 {
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
