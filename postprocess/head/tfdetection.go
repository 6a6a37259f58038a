package head

import (
	"github.com/edge-infer/edge-infer/engine"
)

// LayoutTFDetection is [B,K,4], [B,K], [B,K] and [B]: the corners y1, x1, y2, x2 as shares of the input, scores, class numbers from 1, and
// how many of the K there are.
const LayoutTFDetection Layout = "tf-detection"

type tfDetection struct{}

func (tfDetection) describe() Description {
	return Description{
		Layout: LayoutTFDetection, Task: engine.Detect, Form: "[B,K,4] with y first, [B,K], [B,K] and their number [B]",
		Networks: "TensorFlow's object detection API", Gives: boxesWithClasses, Preset: "tf-detection", Final: true,
	}
}

func (tfDetection) reads(n *network) [][]int {
	all := n.named([]string{"detection_boxes"}, []string{"detection_scores"}, []string{"detection_classes"}, []string{"num_detections"})
	if all == nil {
		return nil
	}
	return [][]int{all}
}

func (h tfDetection) measure(shapes [][]int64) (Sizes, error) { return measureChosen(h, shapes, 1) }

func (tfDetection) number(n *network, _ *Fit) (Numbering, bool) { return n.fromOne(), true }

func (tfDetection) weigh(n *network, f *Fit) (evidence, doubt string) {
	if n.integer(f.Outputs[ChosenCount]) {
		return "", "it could be nms as well (name one of them with --layout)"
	}
	return "the outputs' names, and a number of boxes in floating point", ""
}

func (tfDetection) boxMap(*Fit) (engine.BoxMap, bool) { return engine.BoxMap{}, false }
