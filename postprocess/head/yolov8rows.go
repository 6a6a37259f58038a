package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutYOLOv8Rows is [B,N,4+nc]: the numbers of yolov8 with a row for each box. Programs write it that transpose the output in the file.
const LayoutYOLOv8Rows Layout = "yolov8-rows"

type yolov8Rows struct{ scoredLabels }

func (yolov8Rows) describe() Description {
	return Description{
		Layout: LayoutYOLOv8Rows, Task: engine.Detect, Form: "[B,N,4+nc]", Networks: "YOLOv8 and its successors, transposed",
		Gives: boxesWithClasses,
	}
}

func (yolov8Rows) findOutputs(n *network) [][]int { return n.floats() }

func (h yolov8Rows) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] < 5 && shape[2] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[1], classes: int(max(shape[2]-4, 0))}, nil
}

// recognise expects as many scores as there are labels. Without labels the fifth number could be an objectness, as YOLOX has it: they
// decide.
func (yolov8Rows) recognise(n *network, m *match) (evidence, doubt string) {
	if n.endsInClass(m) || n.sixUnclear(m) || n.metadata.BoxShares ||
		n.labels > 0 && m.classes != n.labels || m.boxes <= 0 || n.metadata.EndToEnd {
		return "", ""
	}
	return n.recogniseCells(m, false)
}

func (yolov8Rows) boxMap(m *match) (engine.BoxMap, bool) {
	output, row := m.outputs[0], 4+int64(m.classes)
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Offset: 4, Step: row, Next: 1},
		Count:  int(m.boxes), Classes: m.classes, ScaleX: 1, ScaleY: 1,
	}, m.boxes > 0 && m.classes > 0
}

func (yolov8Rows) newDecoder(s *settings) decoder { return newDenseDecoder(s) }
