package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutTFDetection is [B,K,4], [B,K], [B,K] and [B]: the corners y1, x1, y2, x2 as shares of the input, scores, class numbers from 1, and
// how many of the K are used.
const LayoutTFDetection Layout = "tf-detection"

type tfDetection struct{ noBoxMap }

func (tfDetection) describe() Description {
	return Description{
		Layout: LayoutTFDetection, Task: engine.Detect, Form: "[B,K,4] with y first, [B,K], [B,K] and their number [B]",
		Networks: "TensorFlow's object detection API, also through TensorFlow Lite", Gives: boxesWithClasses, Preset: "tf-detection",
		NMSFree: true,
	}
}

func (tfDetection) findOutputs(n *network) [][]int {
	all := n.named([]string{"detection_boxes"}, []string{"detection_scores"}, []string{"detection_classes"}, []string{"num_detections"})
	if all == nil {
		all = n.tfLite()
	}
	if all == nil {
		return nil
	}
	return [][]int{all}
}

// tfLite finds the outputs of TensorFlow Lite's detection operator by the names of tf2onnx: boxes, classes, scores and their number.
func (n *network) tfLite() []int {
	var all []int
	for _, suffix := range []string{"", ":2", ":1", ":3"} {
		name := "TFLite_Detection_PostProcess" + suffix
		at := slices.IndexFunc(n.outputs, func(o engine.TensorInfo) bool { return o.Name == name })
		if at < 0 {
			return nil
		}
		all = append(all, at)
	}
	return all
}

func (h tfDetection) measure(shapes [][]int64) (sizes, error) { return measureSelected(h, shapes, 1) }

func (tfDetection) numbering(n *network, _ *match) (numbering, bool) {
	if n.tfLite() == nil {
		return n.fromOne(), true
	}
	switch { // class 0 is the first class, not background
	case n.coco:
		return numbering{first: 1, coco: true}, true
	case n.labels == cocoIDs || n.background:
		return numbering{first: 1}, true
	}
	return numbering{}, true
}

func (tfDetection) recognise(n *network, m *match) (evidence, doubt string) {
	if n.isInteger(m.outputs[selectedCount]) {
		return "", "it could also be nms (select one with --layout)"
	}
	return "the outputs' names, and a number of boxes in floating point", ""
}

func (tfDetection) newDecoder(s *settings) decoder {
	return newSelectedDecoder(s, coordinates{yFirst: true, shares: true})
}
