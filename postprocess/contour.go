package postprocess

import (
	"cmp"
	"math"
	"slices"
)

// Tracer extracts the outlines of masks by marching squares: the lines along which the bilinearly interpolated grid is 0. It reuses its
// memory. One goroutine at a time may use it.
type Tracer struct {
	// MaxCorners bounds the corners of all outlines of a mask together, 0 for 128. Outlines are simplified until they fit, starting with a
	// tolerance of half a pixel.
	MaxCorners int

	visited  []bool
	points   []Point
	outlines [][]Point
	keep     []bool
	stack    [][2]int
	flat     []Point
	simple   [][]Point
}

const defaultMaxCorners = 128

// Outlines returns the outlines of the mask's parts, largest first, without holes. Each is closed from its last corner to its first, in
// pixels where 0, 0 is the outer corner of the first pixel. They are valid until the next call.
func (t *Tracer) Outlines(m *Mask) [][]Point {
	t.points, t.outlines = t.points[:0], t.outlines[:0]
	if !m.Valid() || m.Bounds.Empty() {
		return nil
	}
	wide := m.Width + 1
	t.visited = flags(t.visited, wide*(m.Height+1))
	for row := -1; row < m.Height; row++ {
		for column := -1; column < m.Width; column++ {
			// Every part has a grid point whose upper neighbour is outside: there the outline runs from left to right.
			if !m.inside(column, row) && m.inside(column, row+1) && !t.visited[(row+1)*wide+column+1] {
				t.trace(m, column, row)
			}
		}
	}
	slices.SortStableFunc(t.outlines, func(a, b []Point) int { return cmp.Compare(signedArea(b), signedArea(a)) })
	return t.simplify()
}

// flags returns count false values in reused memory.
func flags(memory []bool, count int) []bool {
	memory = slices.Grow(memory[:0], count)[:count]
	clear(memory)
	return memory
}

// inside reports whether a grid point belongs to the object; points beyond the grid do not.
func (m *Mask) inside(column, row int) bool { return m.value(column, row) > 0 }

func (m *Mask) value(column, row int) float32 {
	if column < 0 || row < 0 || column >= m.Width || row >= m.Height {
		return -1e-6 // makes an outline at the border run along it
	}
	return m.Logits[row*m.Width+column]
}

// The headings along the cells of the grid, clockwise.
const (
	north = iota
	east
	south
	west
)

// trace follows the outline that crosses the grid edge from column, row to the point below it, clockwise around the object, and keeps it
// unless it is a hole. A cell is identified by its top left point.
func (t *Tracer) trace(m *Mask, column, row int) {
	wide, first := m.Width+1, len(t.points)
	// The outline leaves the cell on the left of that edge and heads east.
	x, y, heading := column, row, east
	for {
		var a, b [2]int // the crossed edge
		switch heading {
		case east:
			a, b = [2]int{x, y}, [2]int{x, y + 1}
			t.visited[(y+1)*wide+x+1] = true
		case west:
			a, b = [2]int{x + 1, y}, [2]int{x + 1, y + 1}
		case south:
			a, b = [2]int{x, y}, [2]int{x + 1, y}
		case north:
			a, b = [2]int{x, y + 1}, [2]int{x + 1, y + 1}
		}
		t.points = append(t.points, m.crossing(a, b))
		heading = m.turn(x, y, heading)
		switch heading {
		case east:
			x++
		case west:
			x--
		case south:
			y++
		case north:
			y--
		}
		if x == column && y == row && heading == east {
			break
		}
	}
	if outline := t.points[first:len(t.points):len(t.points)]; signedArea(outline) > 0 {
		t.outlines = append(t.outlines, outline)
	} else {
		t.points = t.points[:first]
	}
}

// turn returns the heading with which an outline leaves a cell. The object is on its right.
func (m *Mask) turn(x, y, heading int) int {
	// The corners of the cell; the far ones depend on the heading.
	corners := [4][2]int{{x, y}, {x + 1, y}, {x + 1, y + 1}, {x, y + 1}} // clockwise from the top left
	left, right := corners[heading], corners[(heading+1)%4]
	atLeft, atRight := m.inside(left[0], left[1]), m.inside(right[0], right[1])
	switch {
	case atLeft && !atRight:
		// A saddle: the mean decides whether the two corners of the object are connected.
		middle := float32(0)
		for _, c := range corners {
			middle += m.value(c[0], c[1])
		}
		if middle > 0 {
			return (heading + 3) % 4
		}
		return (heading + 1) % 4
	case atLeft:
		return (heading + 3) % 4
	case atRight:
		return heading
	}
	return (heading + 1) % 4
}

// crossing returns the image position where the grid is 0 between two neighbouring points.
func (m *Mask) crossing(a, b [2]int) Point {
	va, vb := m.value(a[0], a[1]), m.value(b[0], b[1])
	part := float32(0.5)
	if va != vb {
		part = va / (va - vb)
	}
	if !(part >= 0 && part <= 1) {
		part = 0.5
	}
	column := float32(a[0]) + part*float32(b[0]-a[0])
	row := float32(a[1]) + part*float32(b[1]-a[1])
	return Point{
		X: min(max((column-m.X)/m.StepX+0.5, float32(m.Bounds.Min.X)), float32(m.Bounds.Max.X)),
		Y: min(max((row-m.Y)/m.StepY+0.5, float32(m.Bounds.Min.Y)), float32(m.Bounds.Max.Y)),
	}
}

// signedArea returns the area within a closed line, positive if it runs clockwise on the image.
func signedArea(line []Point) float64 {
	sum := 0.0
	for i := range line {
		a, b := line[i], line[(i+1)%len(line)]
		sum += float64(a.X)*float64(b.Y) - float64(b.X)*float64(a.Y)
	}
	return sum / 2
}

// simplify removes corners until the outlines have at most MaxCorners. Parts left with fewer than three are dropped.
func (t *Tracer) simplify() [][]Point {
	most := t.MaxCorners
	if most < 3 {
		most = defaultMaxCorners
	}
	for tolerance := 0.5; ; tolerance *= 2 {
		t.flat, t.simple = t.flat[:0], t.simple[:0]
		for _, outline := range t.outlines {
			first := len(t.flat)
			t.reduce(outline, tolerance)
			if len(t.flat)-first < 3 {
				t.flat = t.flat[:first]
				continue
			}
			t.simple = append(t.simple, t.flat[first:len(t.flat):len(t.flat)])
		}
		if len(t.flat) <= most {
			return t.simple
		}
	}
}

// reduce appends the corners to t.flat that the Ramer-Douglas-Peucker algorithm keeps at this tolerance.
func (t *Tracer) reduce(outline []Point, tolerance float64) {
	t.keep = flags(t.keep, len(outline))
	far, distance := 0, -1.0
	for i := range outline {
		if d := math.Hypot(float64(outline[i].X-outline[0].X), float64(outline[i].Y-outline[0].Y)); d > distance {
			far, distance = i, d
		}
	}
	t.keep[0], t.keep[far] = true, true
	t.stack = append(t.stack[:0], [2]int{0, far}, [2]int{far, len(outline)})
	for len(t.stack) > 0 {
		piece := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		a, b := outline[piece[0]], outline[piece[1]%len(outline)]
		far, distance := 0, tolerance
		for i := piece[0] + 1; i < piece[1]; i++ {
			if d := lineDistance(outline[i], a, b); d > distance {
				far, distance = i, d
			}
		}
		if distance > tolerance {
			t.keep[far] = true
			t.stack = append(t.stack, [2]int{piece[0], far}, [2]int{far, piece[1]})
		}
	}
	for i, kept := range t.keep {
		if kept {
			t.flat = append(t.flat, outline[i])
		}
	}
}

// lineDistance returns the distance of a point from the line through two others, or from the point if they are equal.
func lineDistance(p, a, b Point) float64 {
	dx, dy := float64(b.X-a.X), float64(b.Y-a.Y)
	px, py := float64(p.X-a.X), float64(p.Y-a.Y)
	if length := math.Hypot(dx, dy); length > 0 {
		return math.Abs(px*dy-py*dx) / length
	}
	return math.Hypot(px, py)
}
