package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutYOLOv5 is [B,N,5+nc]: a row for each box with the centre's x and y, width and height in input pixels, an objectness, and a score
// for each class that is multiplied by it. There are three boxes in each cell.
const LayoutYOLOv5 Layout = "yolov5"

type yolov5 struct{ scoredLabels }

func (yolov5) describe() Description {
	return Description{
		Layout: LayoutYOLOv5, Task: engine.Detect, Form: "[B,N,5+nc]", Networks: "YOLOv5 and YOLOv7 of the original repositories",
		Gives: boxesWithClasses,
	}
}

func (yolov5) findOutputs(n *network) [][]int { return n.floats() }

func (h yolov5) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] < 6 && shape[2] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[1], classes: int(max(shape[2]-5, 0))}, nil
}

// recognise expects the undecoded maps of each scale, with 3 boxes in each cell, as further outputs.
func (yolov5) recognise(n *network, m *match) (evidence, doubt string) {
	row := 5 + int64(m.classes)
	if n.endsInClass(m) || n.sixUnclear(m) {
		return "", ""
	}
	if m.classes == 1 && m.boxes <= maxRows && n.metadata.LastColumn == "" && n.cells(m.boxes, 3, false) != "" {
		return "", "it could also be end2end (select one with --layout)"
	}
	return n.recogniseDense(m, 3, false, func(output int) (bool, string) {
		switch shape := n.outputs[output].Shape; len(shape) {
		case 5:
			return shape[1] == 3 && n.isScale(shape[2], shape[3]) && shape[4] == row, ""
		case 4:
			return shape[1] == 3*row && n.isScale(shape[2], shape[3]), ""
		}
		return false, ""
	})
}

func (yolov5) boxMap(m *match) (engine.BoxMap, bool) {
	output, row := m.outputs[0], 5+int64(m.classes)
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Offset: 5, Step: row, Next: 1},
		Count:  int(m.boxes), Classes: m.classes, Objectness: true, ScaleX: 1, ScaleY: 1,
	}, m.boxes > 0 && m.classes > 0
}

func (yolov5) newDecoder(s *settings) decoder { return newDenseDecoder(s) }
