package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutRTDETR is [B,Q,4], [B,Q] and [B,Q]: the corners x1, y1, x2, y2 in pixels of the second input, orig_target_sizes, which is set to
// the size of the first, scores and class numbers.
const LayoutRTDETR Layout = "rtdetr"

type rtdetr struct {
	noBoxMap
	ownNumbers
}

func (rtdetr) describe() Description {
	return Description{
		Layout: LayoutRTDETR, Task: engine.Detect, Form: "[B,Q,4], [B,Q] and [B,Q]",
		Networks: "RT-DETR, D-FINE and DEIM as their own programs export them", Gives: boxesWithClasses, Preset: "rtdetr", NMSFree: true,
	}
}

func (rtdetr) findOutputs(n *network) [][]int {
	all := n.named([]string{"boxes"}, []string{"scores"}, []string{"labels"})
	if all == nil || !n.isInteger(all[selectedClasses]) {
		return nil
	}
	return [][]int{all}
}

func (h rtdetr) measure(shapes [][]int64) (sizes, error) { return measureSelected(h, shapes, 1) }

func (rtdetr) recognise(n *network, _ *match) (evidence, doubt string) {
	if len(n.outputs) > 3 {
		return "", "there are further outputs (confirm it with --layout rtdetr)"
	}
	return "the outputs' names: boxes, scores and labels of queries", ""
}

func (rtdetr) newDecoder(s *settings) decoder { return newSelectedDecoder(s, coordinates{}) }
