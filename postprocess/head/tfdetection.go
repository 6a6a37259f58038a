package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutTFDetection is [B,K,4], [B,K], [B,K] and [B]: the corners y1, x1, y2, x2 as shares of the input, scores, class numbers from 1, and
// how many of the K there are.
const LayoutTFDetection Layout = "tf-detection"

type tfDetection struct{}

func (tfDetection) describe() Description {
	return Description{
		Layout: LayoutTFDetection, Task: engine.Detect, Form: "[B,K,4] with y first, [B,K], [B,K] and their number [B]",
		Networks: "TensorFlow's object detection API, also through TensorFlow Lite", Gives: boxesWithClasses, Preset: "tf-detection", NMSFree: true,
	}
}

func (tfDetection) reads(n *network) [][]int {
	all := n.named([]string{"detection_boxes"}, []string{"detection_scores"}, []string{"detection_classes"}, []string{"num_detections"})
	if all == nil {
		all = n.lite()
	}
	if all == nil {
		return nil
	}
	return [][]int{all}
}

// lite finds the outputs of TensorFlow Lite's operator for detection as tf2onnx calls them: boxes, classes, scores and their number.
func (n *network) lite() []int {
	var all []int
	for _, behind := range []string{"", ":2", ":1", ":3"} {
		name := "TFLite_Detection_PostProcess" + behind
		at := slices.IndexFunc(n.outputs, func(o engine.TensorInfo) bool { return o.Name == name })
		if at < 0 {
			return nil
		}
		all = append(all, at)
	}
	return all
}

func (h tfDetection) measure(shapes [][]int64) (Sizes, error) { return measureChosen(h, shapes, 1) }

func (tfDetection) number(n *network, _ *Match) (Numbering, bool) {
	if n.lite() == nil {
		return n.fromOne(), true
	}
	switch { // class 0 is the first thing, not background
	case n.labels == cocoClasses:
		return Numbering{first: 1, coco: true}, true
	case n.labels == cocoIDs || n.background:
		return Numbering{first: 1}, true
	}
	return Numbering{}, true
}

func (tfDetection) weigh(n *network, f *Match) (evidence, doubt string) {
	if n.integer(f.Outputs[SelectedCount]) {
		return "", "it could be nms as well (name one of them with --layout)"
	}
	return "the outputs' names, and a number of boxes in floating point", ""
}

func (tfDetection) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }
