package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutSSD is [B,N,4] and [B,N,1+nc]: the corners x1, y1, x2, y2 as shares of the input, and the probabilities of background and each
// class.
const LayoutSSD Layout = "ssd"

type ssd struct{}

func (ssd) describe() Description {
	return Description{
		Layout: LayoutSSD, Task: engine.Detect, Form: "[B,N,4] with [B,N,1+nc]",
		Networks: "SSD-MobileNet of jetson-inference and pytorch-ssd, UltraFace",
		Gives:    boxesWithClasses, Preset: "ssd-mobilenet",
	}
}

func (ssd) findOutputs(n *network) [][]int { return n.pairs() }

// measure does not count the background as a class.
func (h ssd) measure(shapes [][]int64) (sizes, error) {
	s, err := measurePair(h, shapes)
	if err == nil && s.classes == 1 {
		return sizes{}, mismatch(h, shapes)
	}
	s.classes = max(s.classes-1, 0)
	return s, err
}

func (ssd) numbering(n *network, m *match) (numbering, bool) { return n.numbering(m.classes, 1, true) }

// recognise expects the anchors of SSD-MobileNet or UltraFace.
func (ssd) recognise(n *network, m *match) (evidence, doubt string) {
	var family string
	switch m.boxes {
	case anchors(n, 16, 6, 6, 6, 6, 6, 6):
		family = "6 for each cell of the grids of SSD-MobileNet"
	case anchors(n, 8, 3, 2, 2, 3):
		family = "3, 2, 2 and 3 for each cell of the grids of UltraFace"
	default:
		return "", ""
	}
	if len(n.outputs) > 2 {
		return "", "there are further outputs (confirm it with --layout ssd)"
	}
	return fmt.Sprintf("%d boxes are %s at %dx%d, with background before %s",
		m.boxes, family, n.width, n.height, plural(m.classes, "class")), ""
}

// anchors returns the number of boxes in grids with perCell boxes in each cell. The cells of the first grid have sides of stride pixels of
// the input, and each grid has half the sides of the previous one, rounded up.
func anchors(n *network, stride int, perCell ...int64) (boxes int64) {
	width, height := n.width, n.height
	for ; stride > 1; stride /= 2 {
		width, height = (width+1)/2, (height+1)/2
	}
	for _, count := range perCell {
		boxes += count * int64(width) * int64(height)
		width, height = (width+1)/2, (height+1)/2
	}
	return boxes
}

func (ssd) boxMap(m *match) (engine.BoxMap, bool) {
	b, ok := pairMap(m)
	b.Corners = true
	b.Scores.Offset = 1
	b.Scores.Step = int64(m.classes) + 1
	return m.inShares(b), ok
}

func (ssd) newDecoder(s *settings) decoder { return newDenseDecoder(s) }
