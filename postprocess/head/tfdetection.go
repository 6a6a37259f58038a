package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutTFDetection is [B,K,4], [B,K], [B,K] and [B]: the corners y1, x1, y2, x2 as shares of the input, scores, class numbers from 1, and how
// many of the K there are.
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

func (h tfDetection) measure(shapes [][]int64) (sizes, error) { return measureChosen(h, shapes, 1) }

func (tfDetection) number(n *network, _ *fit) (numbering, bool) { return n.fromOne(), true }

func (tfDetection) weigh(n *network, f *fit) (evidence, doubt string) {
	if n.integer(f.outputs[chosenCount]) {
		return "", "it could be nms as well (name one of them with --layout)"
	}
	return "the outputs' names, and a number of boxes in floating point", ""
}

func (tfDetection) boxMap(*fit) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

func (tfDetection) decode(d *Decoder, dst []postprocess.Finding) ([]postprocess.Finding, error) {
	if err := d.chosen(d.shares(true)); err != nil {
		return dst, err
	}
	return d.finish(dst), nil
}
