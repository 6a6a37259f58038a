package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutNMS is [B,K,4], [B,K], [B,K] and [B,1]: the corners x1, y1, x2, y2 of boxes that the network has suppressed itself, their scores
// and class numbers, and how many of the K are used. Coordinates are input pixels or shares of the input; the values decide.
const LayoutNMS Layout = "nms"

type nms struct {
	noBoxMap
	ownNumbers
}

func (nms) describe() Description {
	return Description{
		Layout: LayoutNMS, Task: engine.Detect, Form: "[B,K,4], [B,K], [B,K] and their number [B,1]",
		Networks: "plans and exports that end in EfficientNMS_TRT, BatchedNMS_TRT or SuperGradients' suppression", Gives: boxesWithClasses,
		NMSFree: true,
	}
}

func (nms) findOutputs(n *network) [][]int {
	all := n.named(
		[]string{"det_boxes", "nmsed_boxes", "pred_boxes", "BatchedNMS_1", "detection_boxes"},
		[]string{"det_scores", "nmsed_scores", "pred_scores", "BatchedNMS_2", "detection_scores"},
		[]string{"det_classes", "nmsed_classes", "pred_classes", "BatchedNMS_3", "detection_classes"},
		[]string{"num_dets", "num_detections", "num_predictions", "BatchedNMS"},
	)
	if all == nil {
		return nil
	}
	return [][]int{all}
}

func (h nms) measure(shapes [][]int64) (sizes, error) { return measureSelected(h, shapes, 1) }

func (nms) recognise(n *network, m *match) (evidence, doubt string) {
	switch {
	case !hasName(n.outputs[m.outputs[selectedBoxes]].Name, "detection_boxes"):
		return "the outputs' names: boxes that are suppressed already", ""
	case n.isInteger(m.outputs[selectedCount]):
		return "", "it could also be tf-detection (select one with --layout)"
	}
	return "", ""
}

func (nms) newDecoder(s *settings) decoder {
	return &selectedDecoder{newBoxes(s), func(d *selectedDecoder, in *input) coordinates {
		return coordinates{shares: d.inShares(in)}
	}}
}

// inShares reports whether coordinates are shares of the input's sides: no box above the minimum score ends beyond 2.
func (d *selectedDecoder) inShares(in *input) bool {
	scores := in.tensors[selectedScores].data
	count, _ := d.count(in, len(scores)) // decode returns the error
	shares := false
	for i, score := range scores[:count] {
		if score >= d.MinScore {
			if slices.Max(in.tensors[selectedBoxes].data[4*i:][:4]) > 2 {
				return false
			}
			shares = true
		}
	}
	return shares
}
