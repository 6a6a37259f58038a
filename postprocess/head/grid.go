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

// scale is one of the grids of cells that a detector has boxes in.
type scale struct {
	stride int // in input pixels
	first  int // number of its first box
	width  int // cells
}

// grid is all scales of a detector, the finest first, with a box in each cell.
type grid struct {
	scales [mostScales]scale
	count  int
}

// gridOf lays out the scales from the first stride on that have so many boxes together, perCell in each cell. A detector has two scales at
// least, whose strides double from one to the next; the cells of a single scale are too often some other number as well, 3 times 100 for
// instance. partial counts cells that the input fills in part.
func gridOf(width, height, first, perCell int, boxes int64, partial bool) (g grid, ok bool) {
	total := int64(0)
	for stride := first; stride <= largestStride && g.count < mostScales; stride *= 2 {
		columns, rows := width/stride, height/stride
		if partial {
			columns, rows = (width+stride-1)/stride, (height+stride-1)/stride
		}
		g.scales[g.count] = scale{stride, int(total), columns}
		g.count++
		if total += int64(columns) * int64(rows) * int64(perCell); total == boxes && g.count > 1 {
			return g, true
		}
	}
	return grid{}, false
}

// cell is the scale of a box, and where in it the box lies.
func (g *grid) cell(box int) (s *scale, x, y int) {
	at := g.count - 1
	for at > 0 && box < g.scales[at].first {
		at--
	}
	s = &g.scales[at]
	return s, (box - s.first) % s.width, (box - s.first) / s.width
}

// grid finds scales that have that many boxes at the network's input, perCell in each cell, up to the largest stride where the file names
// it.
func (n *network) grid(boxes int64, perCell int, partial bool) (grid, bool) {
	for first := smallestStride; first <= largestFirst; first *= 2 {
		g, ok := gridOf(n.width, n.height, first, perCell, boxes, partial)
		if ok && (n.metadata.Stride == 0 || n.metadata.Stride == g.scales[g.count-1].stride) {
			return g, true
		}
	}
	return grid{}, false
}

// cells says in words which scales have that many boxes at the network's input; empty when none have.
func (n *network) cells(boxes int64, perCell int, partial bool) string {
	g, ok := n.grid(boxes, perCell, partial)
	if !ok {
		return ""
	}
	var strides []string
	for _, s := range g.scales[:g.count] {
		strides = append(strides, fmt.Sprint(s.stride))
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
