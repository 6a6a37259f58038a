package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutUltralyticsRTDETR is [B,Q,4+nc]: a row for each query with the centre's x and y, width and height as shares of the input, and the
// scores of the classes, after their sigmoid.
const LayoutUltralyticsRTDETR Layout = "ultralytics-rtdetr"

type ultralyticsRTDETR struct{ labelsAsScored }

func (ultralyticsRTDETR) describe() Description {
	return Description{
		Layout: LayoutUltralyticsRTDETR, Task: engine.Detect, Form: "[B,Q,4+nc]", Networks: "RT-DETR of Ultralytics", Gives: boxesWithClasses,
		Preset: "ultralytics-rtdetr", NMSFree: true,
	}
}

func (ultralyticsRTDETR) reads(n *network) [][]int { return n.single() }

func (h ultralyticsRTDETR) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] < 5 && shape[2] != -1 || shape[1] > mostRows {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: shape[1], Classes: int(max(shape[2]-4, 0))}, nil
}

func (ultralyticsRTDETR) weigh(n *network, f *Match) (evidence, doubt string) {
	switch said := n.saysRTDETR(); {
	case len(n.outputs) > 1 || n.labels == 0 || f.Classes != n.labels:
		return "", ""
	case said && f.Classes == 2:
		return "", "it could be " + string(LayoutUltralyticsRTDETREnd2End) + " as well (name one of them with --layout)"
	case said:
		return "the file says that it is RT-DETR, with " + Plural(n.labels, "class") + " as there are labels", ""
	case f.Classes == 2:
		return "", "" // end2end says that it could be either
	case f.Boxes < 0:
		return "", ""
	}
	return fmt.Sprintf("a short list of rows of 4 numbers and the scores of %s, as there are labels", Plural(n.labels, "class")), ""
}

func (ultralyticsRTDETR) boxMap(f *Match) (engine.BoxMap, bool) {
	output, row := f.Outputs[0], 4+int64(f.Classes)
	return f.shares(engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Offset: 4, Step: row, Next: 1},
		Count:  int(f.Boxes), Classes: f.Classes,
	}), f.Boxes > 0 && f.Classes > 0
}

// saysRTDETR reports whether the file says that it is RT-DETR as Ultralytics has it.
func (n *network) saysRTDETR() bool { return n.metadata.Preprocess.Preset == "ultralytics-rtdetr" }

// LayoutUltralyticsRTDETREnd2End is [B,Q,6]: a row for each of the best queries with the centre's x and y, width and height as shares of
// the input, score and class.
const LayoutUltralyticsRTDETREnd2End Layout = "ultralytics-rtdetr-end2end"

type ultralyticsRTDETREnd2End struct{ labelsAsScored }

func (ultralyticsRTDETREnd2End) describe() Description {
	return Description{
		Layout: LayoutUltralyticsRTDETREnd2End, Task: engine.Detect, Form: "[B,Q,6]", Networks: "RT-DETR as Ultralytics exports it lately",
		Gives: boxesWithClasses, Preset: "ultralytics-rtdetr", NMSFree: true,
	}
}

func (ultralyticsRTDETREnd2End) reads(n *network) [][]int { return n.single() }

func (ultralyticsRTDETREnd2End) measure(shapes [][]int64) (Sizes, error) {
	return endToEnd{}.measure(shapes)
}

func (ultralyticsRTDETREnd2End) weigh(n *network, f *Match) (evidence, doubt string) {
	if !n.saysRTDETR() || len(n.outputs) > 1 || n.labels == 2 || n.outputs[f.Outputs[0]].Shape[2] < 0 {
		return "", "" // with two classes ultralytics-rtdetr says that it could be either
	}
	return "the file says that it is RT-DETR, with rows of 6 numbers, which the scores of " + Plural(n.labels, "class") +
		" leave no room for", ""
}

func (ultralyticsRTDETREnd2End) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }
