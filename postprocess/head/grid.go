package head

import (
	"fmt"
	"strings"
)

// Strides of detectors' scales: that of the finest scale lies between the first two.
const (
	smallestStride = 4
	largestFirst   = 16
	largestStride  = 128
	maxScales      = 6
)

// scale is one of a detector's grids of cells.
type scale struct {
	stride int // in input pixels
	first  int // index of its first box
	width  int // in cells
}

// grid is all scales of a detector, the finest first, with a box in each cell.
type grid struct {
	scales [maxScales]scale
	count  int
}

// newGrid returns the scales, from the first stride on, that have the given number of boxes in total with perCell boxes in each cell. At
// least two scales are required, whose strides double from one to the next: the cell count of a single scale equals other numbers too
// often, such as 3*100. partial also counts cells that the input covers in part.
func newGrid(width, height, first, perCell int, boxes int64, partial bool) (g grid, ok bool) {
	total := int64(0)
	for stride := first; stride <= largestStride && g.count < maxScales; stride *= 2 {
		columns, rows := width/stride, height/stride
		if partial {
			columns, rows = (width+stride-1)/stride, (height+stride-1)/stride
		}
		g.scales[g.count] = scale{stride, int(total), columns}
		g.count++
		total += int64(columns) * int64(rows) * int64(perCell)
		if total == boxes && g.count > 1 {
			return g, true
		}
	}
	return grid{}, false
}

// cell returns the scale of a box, and its column and row in it.
func (g *grid) cell(box int) (s *scale, x, y int) {
	at := g.count - 1
	for at > 0 && box < g.scales[at].first {
		at--
	}
	s = &g.scales[at]
	return s, (box - s.first) % s.width, (box - s.first) / s.width
}

// grid returns the scales that have that many boxes at the network's input, perCell in each cell, up to the largest stride if the file
// specifies it.
func (n *network) grid(boxes int64, perCell int, partial bool) (grid, bool) {
	for first := smallestStride; first <= largestFirst; first *= 2 {
		g, ok := newGrid(n.width, n.height, first, perCell, boxes, partial)
		if ok && (n.metadata.Stride == 0 || n.metadata.Stride == g.scales[g.count-1].stride) {
			return g, true
		}
	}
	return grid{}, false
}

// cells describes the scales that have the given number of boxes at the network's input size; empty if there are none.
func (n *network) cells(boxes int64, perCell int, partial bool) string {
	g, ok := n.grid(boxes, perCell, partial)
	if !ok {
		return ""
	}
	var strides []string
	for _, s := range g.scales[:g.count] {
		strides = append(strides, fmt.Sprint(s.stride))
	}
	each := ""
	if perCell > 1 {
		each = fmt.Sprintf(", %d a cell", perCell)
	}
	return fmt.Sprintf("%d anchors at strides %s of %dx%d%s", boxes, strings.Join(strides, ", "), n.width, n.height, each)
}

// isScale reports whether a map of that height and width is one of the network's scales.
func (n *network) isScale(height, width int64) bool {
	for stride := smallestStride; stride <= largestStride; stride *= 2 {
		if height == int64(n.height/stride) && width == int64(n.width/stride) {
			return true
		}
	}
	return false
}

// grid returns the cells of the boxes, from any stride on.
func (m *match) grid(partial bool) (g grid, ok bool) {
	for first := smallestStride; first <= largestFirst && !ok; first *= 2 {
		g, ok = newGrid(m.width, m.height, first, 1, m.boxes, partial)
	}
	return g, ok
}
