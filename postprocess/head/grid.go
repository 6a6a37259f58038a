package head

import (
	"fmt"
	"strings"
)

// What strides the scales of detectors have: those of the finest scale lie between the first two.
const (
	smallestStride = 4
	largestFirst   = 16
	largestStride  = 128
	mostScales     = 6
)

// Scale is one of the grids of cells that a detector has boxes in.
type Scale struct {
	Stride int // in input pixels
	First  int // number of its first box
	Width  int // cells
}

// Grid is all scales of a detector, the finest first, with a box in each cell.
type Grid struct {
	Scales [mostScales]Scale
	Count  int
}

// gridOf lays out the scales from the first stride on that have so many boxes together, perCell in each cell. A detector has two scales at
// least, whose strides double from one to the next; the cells of a single scale are too often some other number as well, 3 times 100 for
// instance. partial counts cells that the input fills in part.
func gridOf(width, height, first, perCell int, boxes int64, partial bool) (g Grid, ok bool) {
	total := int64(0)
	for stride := first; stride <= largestStride && g.Count < mostScales; stride *= 2 {
		columns, rows := width/stride, height/stride
		if partial {
			columns, rows = (width+stride-1)/stride, (height+stride-1)/stride
		}
		g.Scales[g.Count] = Scale{stride, int(total), columns}
		g.Count++
		if total += int64(columns) * int64(rows) * int64(perCell); total == boxes && g.Count > 1 {
			return g, true
		}
	}
	return Grid{}, false
}

// Cell is the scale of a box, and where in it the box lies.
func (g *Grid) Cell(box int) (s *Scale, x, y int) {
	at := g.Count - 1
	for at > 0 && box < g.Scales[at].First {
		at--
	}
	s = &g.Scales[at]
	return s, (box - s.First) % s.Width, (box - s.First) / s.Width
}

// grid finds scales that have that many boxes at the network's input, perCell in each cell, up to the largest stride where the file names
// it.
func (n *network) grid(boxes int64, perCell int, partial bool) (Grid, bool) {
	for first := smallestStride; first <= largestFirst; first *= 2 {
		g, ok := gridOf(n.width, n.height, first, perCell, boxes, partial)
		if ok && (n.metadata.Stride == 0 || n.metadata.Stride == g.Scales[g.Count-1].Stride) {
			return g, true
		}
	}
	return Grid{}, false
}

// cells says in words which scales have that many boxes at the network's input; empty when none have.
func (n *network) cells(boxes int64, perCell int, partial bool) string {
	g, ok := n.grid(boxes, perCell, partial)
	if !ok {
		return ""
	}
	var strides []string
	for _, s := range g.Scales[:g.Count] {
		strides = append(strides, fmt.Sprint(s.Stride))
	}
	each := "a box"
	if perCell > 1 {
		each = fmt.Sprintf("%d boxes", perCell)
	}
	return fmt.Sprintf("%d boxes are %s for each cell of %s at %dx%d", boxes, each, list("stride", strides), n.width, n.height)
}

// list is "strides 8, 16 and 32".
func list(what string, items []string) string {
	last := len(items) - 1
	return fmt.Sprintf("%ss %s and %s", what, strings.Join(items[:last], ", "), items[last])
}

// scale reports whether a map of that height and width is one of the network's scales.
func (n *network) scale(height, width int64) bool {
	for stride := smallestStride; stride <= largestStride; stride *= 2 {
		if height == int64(n.height/stride) && width == int64(n.width/stride) {
			return true
		}
	}
	return false
}

// Cells are those of the boxes, from any stride on.
func (f *Match) Cells(partial bool) (g Grid, ok bool) {
	for first := smallestStride; first <= largestFirst && !ok; first *= 2 {
		g, ok = gridOf(f.Width, f.Height, first, 1, f.Boxes, partial)
	}
	return g, ok
}
