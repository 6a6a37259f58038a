package head

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

// scaleMap is an output with the numbers of every cell of one of a detector's scales, [B,C,h,w] or, interleaved, [B,h,w,C].
type scaleMap struct {
	output        int
	channels      int
	width, height int // in cells
	interleaved   bool
}

func (m *scaleMap) cells() int { return m.width * m.height }

// numbers returns the position of every cell's channels, from channel first on.
func (m *scaleMap) numbers(first int) engine.Numbers {
	if m.interleaved {
		return engine.Numbers{Output: m.output, Offset: int64(first), Step: int64(m.channels), Next: 1}
	}
	return engine.Numbers{Output: m.output, Offset: int64(first) * int64(m.cells()), Step: 1, Next: int64(m.cells())}
}

// newScaleMap measures a map by its shape, false for other shapes and while a size is open.
func newScaleMap(output int, shape []int64, interleaved bool) (scaleMap, bool) {
	if len(shape) != 4 {
		return scaleMap{}, false
	}
	channels, height, width := shape[1], shape[2], shape[3]
	if interleaved {
		channels, height, width = shape[3], shape[1], shape[2]
	}
	if channels < 1 || height < 1 || width < 1 || channels*height*width > maxMapNumbers {
		return scaleMap{}, false
	}
	return scaleMap{output, int(channels), int(width), int(height), interleaved}, true
}

// maxMapNumbers is above the size of every map that a network has for an image.
const maxMapNumbers = 1 << 31

// scaleMaps returns the network's outputs by scale, the finest first, each in the order of the file. It is nil unless all outputs are maps
// of at least two scales whose strides double from one to the next.
func (n *network) scaleMaps(interleaved bool) (scales [][]scaleMap) {
	for i := range n.outputs {
		o := &n.outputs[i]
		m, ok := newScaleMap(i, o.Shape, interleaved)
		if !ok || o.Type != engine.Float32 && o.Type != engine.Float16 || !n.isScale(int64(m.height), int64(m.width)) {
			return nil
		}
		at := slices.IndexFunc(scales, func(of []scaleMap) bool { return of[0].width == m.width && of[0].height == m.height })
		if at < 0 {
			at = len(scales)
			scales = append(scales, nil)
		}
		scales[at] = append(scales[at], m)
	}
	slices.SortStableFunc(scales, func(a, b []scaleMap) int { return cmp.Compare(b[0].cells(), a[0].cells()) })
	for i := range scales {
		if i > 0 && n.width/scales[i][0].width != 2*(n.width/scales[i-1][0].width) {
			return nil
		}
	}
	if len(scales) < 2 {
		return nil
	}
	return scales
}

// strides describes scales by their strides.
func (n *network) strides(widths []int) string {
	var strides []string
	for _, width := range widths {
		strides = append(strides, fmt.Sprint(n.width/width))
	}
	last := len(strides) - 1
	return fmt.Sprintf("strides %s and %s at %dx%d", strings.Join(strides[:last], ", "), strides[last], n.width, n.height)
}
