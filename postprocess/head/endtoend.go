package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutEnd2End is [B,N,6]: a row for each box with its corners x1, y1, x2, y2 in input pixels, score and class. The network has suppressed
// already; rows that it has no box for score 0.
const LayoutEnd2End Layout = "end2end"

type endToEnd struct{ labelsAsScored }

func (endToEnd) describe() Description {
	return Description{
		Layout: LayoutEnd2End, Task: engine.Detect, Form: "[B,N,6]", Networks: "YOLOv10, YOLO26, exports with nms=True",
		Gives: boxesWithClasses, NMSFree: true,
	}
}

func (endToEnd) reads(n *network) [][]int { return n.single() }

func (h endToEnd) measure(shapes [][]int64) (Sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] != 6 && shape[2] != -1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: shape[1]}, nil
}

// mostRows separates short lists from maps with a box in every cell. Exports write 300 rows.
const mostRows = 1000

// weigh looks for what else has six numbers a box: coordinates, objectness and one class, or coordinates and two classes.
func (endToEnd) weigh(n *network, f *Match) (evidence, doubt string) {
	const confirm = "(confirm it with --layout end2end)"
	columns := n.outputs[f.Outputs[0]].Shape[2]
	switch {
	case f.Boxes > mostRows || columns < 0 && !n.metadata.EndToEnd, n.saysRTDETR():
		return "", ""
	case n.metadata.EndToEnd:
		return "the file says that its boxes are suppressed already", ""
	case len(n.outputs) > 1:
		return "", "there are other outputs beside it: " + n.String() + " " + confirm
	case n.labels <= 1 && (f.Boxes < 0 || n.cells(f.Boxes, 3, false) != ""):
		return "", "it could be yolov5 with 1 class as well (name one of them with --layout)"
	case n.labels == 0 || n.labels == 2:
		return "", "boxes with the scores of 2 classes would look the same " + confirm
	}
	const room = "a short list of rows of 6 numbers, which neither an objectness nor the scores of %s leave room for"
	return fmt.Sprintf(room, Plural(n.labels, "class")), ""
}

func (endToEnd) boxMap(*Match) (engine.BoxMap, bool) { return engine.BoxMap{}, false }
