package head

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// LayoutYOLOv8 is [B,4+nc,N]: a column for each box with the centre's x and y, width and height in input pixels, and a score for each
// class, after its sigmoid. There is one box in each cell.
const LayoutYOLOv8 Layout = "yolov8"

type yolov8 struct{ scoredLabels }

func (yolov8) describe() Description {
	return Description{
		Layout: LayoutYOLOv8, Task: engine.Detect, Form: "[B,4+nc,N]", Networks: "YOLOv8, v9, 11, 12 and others of Ultralytics, YOLOv5u",
		Gives: boxesWithClasses,
	}
}

func (yolov8) findOutputs(n *network) [][]int { return n.floats() }

func (h yolov8) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[1] < 5 && shape[1] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[2], classes: int(max(shape[1]-4, 0))}, nil
}

// recognise expects the undecoded maps of each scale, with 16 distances to each side and the classes, as further outputs. It knows a
// network whose scores look like columns of boxes and scores.
func (yolov8) recognise(n *network, m *match) (evidence, doubt string) {
	own := n.outputs[m.outputs[0]].Shape
	twin := slices.IndexFunc(n.outputs, func(o engine.TensorInfo) bool { return slices.Equal(o.Shape, own) })
	if twin < m.outputs[0] {
		return "", "" // the first of them returns the doubt
	}
	if slices.ContainsFunc(n.floats(), func(o []int) bool { return n.isMatrix(o[0], m.boxes, 4) }) {
		return "", "" // scores of ppYOLOE, which returns the doubt
	}
	return n.recogniseDense(m, 1, false, func(output int) (bool, string) {
		shape := n.outputs[output].Shape
		name := n.list([]int{output})
		switch {
		case len(shape) == 4 && shape[1] == 64+int64(m.classes) && n.isScale(shape[2], shape[3]):
			return true, ""
		case slices.Equal(shape, own):
			return false, "YOLOv9 trained with two heads gives its training first (--layout " + string(LayoutYOLOv8) + " reads the first)"
		case n.isMatrix(output, 4, m.boxes):
			return false, fmt.Sprintf("it is the scores of %d classes for the boxes %.20s (join the two in the file, boxes first)",
				m.classes+4, name)
		}
		return false, ""
	})
}

func (yolov8) boxMap(m *match) (engine.BoxMap, bool) {
	output := m.outputs[0]
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: 1, Next: m.boxes},
		Scores: engine.Numbers{Output: output, Offset: 4 * m.boxes, Step: 1, Next: m.boxes},
		Count:  int(m.boxes), Classes: m.classes, ScaleX: 1, ScaleY: 1,
	}, m.boxes > 0 && m.classes > 0
}

func (yolov8) newDecoder(s *settings) decoder { return newDenseDecoder(s) }
