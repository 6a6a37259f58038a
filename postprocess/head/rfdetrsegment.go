package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutRFDETRSegment is LayoutRFDETR with [B,Q,h,w]: the mask of each query as log odds on a grid over the whole image, which nothing
// cuts to the box.
const LayoutRFDETRSegment Layout = "rfdetr-segment"

type rfdetrSegment struct{ rfdetr }

func (rfdetrSegment) describe() Description {
	return Description{
		Layout: LayoutRFDETRSegment, Task: engine.Segment, Form: "[B,Q,4] with [B,Q,1+nc] before sigmoid and [B,Q,h,w]",
		Networks: "segmentation of RF-DETR", Gives: boxesWithMasks, Preset: "rfdetr", NMSFree: true, ScanFormat: scan.Format{Logits: true},
	}
}

func (rfdetrSegment) reads(n *network) [][]int {
	if all := n.named([]string{"dets"}, []string{"labels"}, []string{"masks"}); all != nil {
		return [][]int{all}
	}
	return nil
}

// mostPoints bounds the grid of one mask.
const mostPoints = 1 << 22

func (h rfdetrSegment) measure(shapes [][]int64) (Sizes, error) {
	s, err := measurePair(h, shapes)
	masks := shapes[2]
	if err != nil || len(masks) != 4 || masks[1] != s.Boxes || masks[2] < 1 || masks[3] < 1 || masks[2]*masks[3] > mostPoints {
		return Sizes{}, misfit(h, shapes)
	}
	s.Extra = int(masks[2] * masks[3])
	return s, nil
}

func (rfdetrSegment) weigh(n *network, f *Match) (evidence, doubt string) {
	return weighQueries(n, f, "boxes and masks")
}

func (rfdetrSegment) extra(f *Match) engine.Numbers {
	return engine.Numbers{Output: f.Outputs[2], Step: int64(f.Extra), Next: 1}
}
