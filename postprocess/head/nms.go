package head

import (
	"github.com/edge-infer/edge-infer/engine"
)

// LayoutNMS is [B,K,4], [B,K], [B,K] and [B,1]: the corners x1, y1, x2, y2 of boxes that the network has suppressed itself, their scores
// and class numbers, and how many of the K there are. Coordinates are pixels of the input or shares of it; the numbers tell which.
const LayoutNMS Layout = "nms"

type nms struct{}

func (nms) describe() Description {
	return Description{
		Layout: LayoutNMS, Task: engine.Detect, Form: "[B,K,4], [B,K], [B,K] and their number [B,1]",
		Networks: "plans and exports that end in EfficientNMS_TRT, BatchedNMS_TRT or SuperGradients' suppression", Gives: boxesWithClasses,
		NMSFree: true,
	}
}

func (nms) reads(n *network) [][]int {
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

func (h nms) measure(shapes [][]int64) (Sizes, error) { return measureChosen(h, shapes, 1) }

func (nms) number(*network, *Match) (Numbering, bool) { return Numbering{}, true }

func (nms) weigh(n *network, f *Match) (evidence, doubt string) {
	switch {
	case !called(n.outputs[f.Outputs[SelectedBoxes]].Name, "detection_boxes"):
		return "the outputs' names: boxes that are suppressed already", ""
	case n.integer(f.Outputs[SelectedCount]):
		return "", "its boxes could be y1, x1, y2, x2 and its classes numbered from 1, as tf-detection has them, as well " +
			"(name one of them with --layout)"
	}
	return "", ""
}

func (nms) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }
