package head

import (
	"github.com/edge-infer/edge-infer/engine"
)

// LayoutRTDETR is [B,Q,4], [B,Q] and [B,Q]: the corners x1, y1, x2, y2 in pixels of the size that the network was given, scores and class
// numbers. The size is a second input, orig_target_sizes, which is given that of the first.
const LayoutRTDETR Layout = "rtdetr"

type rtdetr struct{}

func (rtdetr) describe() Description {
	return Description{
		Layout: LayoutRTDETR, Task: engine.Detect, Form: "[B,Q,4], [B,Q] and [B,Q]",
		Networks: "RT-DETR, D-FINE and DEIM as their own programs export them", Gives: boxesWithClasses, Preset: "rtdetr", NMSFree: true,
	}
}

func (rtdetr) reads(n *network) [][]int {
	all := n.named([]string{"boxes"}, []string{"scores"}, []string{"labels"})
	if all == nil || !n.integer(all[SelectedClasses]) {
		return nil
	}
	return [][]int{all}
}

func (h rtdetr) measure(shapes [][]int64) (Sizes, error) { return measureChosen(h, shapes, 1) }

func (rtdetr) number(n *network, _ *Match) (Numbering, bool) { return Numbering{}, true }

func (rtdetr) weigh(n *network, _ *Match) (evidence, doubt string) {
	if len(n.outputs) > 3 {
		return "", "there are other outputs beside it: " + n.String() + " (confirm it with --layout rtdetr)"
	}
	return "the outputs' names: boxes, scores and labels of queries", ""
}

func (rtdetr) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }
