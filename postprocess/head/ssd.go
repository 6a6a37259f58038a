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
		Layout: LayoutSSD, Task: engine.Detect, Form: "[B,N,4] with [B,N,1+nc]", Networks: "SSD-MobileNet of jetson-inference and pytorch-ssd",
		Gives: boxesWithClasses, Preset: "ssd-mobilenet",
	}
}

func (ssd) reads(n *network) [][]int { return n.pairs() }

// measure leaves the background out.
func (h ssd) measure(shapes [][]int64) (Sizes, error) {
	s, err := measurePair(h, shapes)
	if err == nil && s.Classes == 1 {
		return Sizes{}, misfit(h, shapes)
	}
	s.Classes = max(s.Classes-1, 0)
	return s, err
}

func (ssd) number(n *network, f *Match) (Numbering, bool) { return n.number(f.Classes, 1, true) }

// weigh looks for the boxes of SSD-MobileNet: six in each cell of six grids, the first with a sixteenth of the input's sides, each with
// half the sides of the one before.
func (ssd) weigh(n *network, f *Match) (evidence, doubt string) {
	boxes, width, height := int64(0), n.width, n.height
	for stride := 2; stride <= 16; stride *= 2 {
		width, height = (width+1)/2, (height+1)/2
	}
	for range 6 {
		boxes += 6 * int64(width) * int64(height)
		width, height = (width+1)/2, (height+1)/2
	}
	switch {
	case boxes != f.Boxes:
		return "", ""
	case len(n.outputs) > 2:
		return "", "there are other outputs beside it: " + n.String() + " (confirm it with --layout ssd)"
	}
	return fmt.Sprintf("%d boxes are 6 for each cell of the grids of SSD-MobileNet at %dx%d, with background before %s",
		f.Boxes, n.width, n.height, Plural(f.Classes, "class")), ""
}

func (ssd) boxMap(f *Match) (engine.BoxMap, bool) {
	m, ok := pairMap(f)
	m.Corners, m.Scores.Offset, m.Scores.Step = true, 1, int64(f.Classes)+1
	return f.shares(m), ok
}
