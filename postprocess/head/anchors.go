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
)

// cells says in words which scales have that many boxes at the network's input, perCell in each cell; empty when none have. A detector has
// two scales at least, whose strides double from one to the next, up to the largest one where the file names it. The cells of a single
// scale are too often some other number as well, 3 times 100 for instance.
func (n *network) cells(boxes int64, perCell int) string {
	for first := smallestStride; first <= largestFirst; first *= 2 {
		var strides []string
		var count int64
		for stride := first; stride <= largestStride; stride *= 2 {
			count += int64(n.width/stride) * int64(n.height/stride) * int64(perCell)
			strides = append(strides, fmt.Sprint(stride))
			if count != boxes || len(strides) < 2 || n.metadata.Stride > 0 && n.metadata.Stride != stride {
				continue
			}
			each := "a box"
			if perCell > 1 {
				each = fmt.Sprintf("%d boxes", perCell)
			}
			return fmt.Sprintf("%d boxes are %s for each cell of %s at %dx%d", boxes, each, list("stride", strides), n.width, n.height)
		}
	}
	return ""
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
