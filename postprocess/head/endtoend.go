package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// LayoutEnd2End is [B,N,6]: a row for each box with its corners x1, y1, x2, y2 in input pixels, score and class. The network has suppressed
// overlapping boxes; unused rows score 0.
const LayoutEnd2End Layout = "end2end"

type endToEnd struct {
	scoredLabels
	noBoxMap
}

func (endToEnd) describe() Description {
	return Description{
		Layout: LayoutEnd2End, Task: engine.Detect, Form: "[B,N,6]", Networks: "YOLOv10, YOLO26, exports with nms=True",
		Gives: boxesWithClasses, NMSFree: true,
	}
}

func (endToEnd) findOutputs(n *network) [][]int { return n.floats() }

func (h endToEnd) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] != 6 && shape[2] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[1]}, nil
}

// maxRows separates short lists from maps with a box in every cell. Exports write 300 rows.
const maxRows = 1000

// recognise rules out other heads with six numbers for each box: coordinates, objectness and one class, or coordinates and two classes.
func (endToEnd) recognise(n *network, m *match) (evidence, doubt string) {
	const confirm = "(confirm it with --layout end2end)"
	columns := n.outputs[m.outputs[0]].Shape[2]
	switch {
	case m.boxes > maxRows || columns < 0 && !n.metadata.EndToEnd, n.fileNamesRTDETR():
		return "", ""
	case n.metadata.EndToEnd:
		return "the file specifies that its boxes are suppressed already", ""
	case n.endsInClass(m):
		return "a short list of rows of 6 numbers, which its graph ends with score and class", ""
	case n.hasSix(m) && n.metadata.LastColumn == engine.ScoreColumn && n.labels > 0:
		return "", ""
	case len(n.outputs) > 1:
		return "", "there are further outputs " + confirm
	case n.labels <= 1 && (m.boxes < 0 || n.cells(m.boxes, 3, false) != ""):
		return "", "it could also be yolov5 with 1 class (select one with --layout)"
	case n.labels == 0 || n.labels == 2:
		return "", "boxes with the scores of 2 classes would look the same " + confirm
	}
	const room = "a short list of rows of 6 numbers, which neither an objectness nor the scores of %s leave room for"
	return fmt.Sprintf(room, plural(n.labels, "class")), ""
}

func (endToEnd) newDecoder(s *settings) decoder { return &listDecoder{newBoxes(s)} }

// listDecoder decodes lists of rows with corners, score and class.
type listDecoder struct{ boxes }

func (d *listDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if err := d.list(in, in.tensors[0].data, engine.CandidateFields); err != nil {
		return dst, err
	}
	return d.finish(in, dst), nil
}
