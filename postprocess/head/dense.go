package head

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// boxesWithClasses describes the results of detectors.
const boxesWithClasses = "box, class and score of each object"

// recogniseDense returns the evidence for heads with boxes in every cell of their scales: as many boxes as there are cells, and as many
// classes as there are labels. Neither is enough alone: keypoints, mask coefficients and an angle stand where classes would, and only the
// labels distinguish them. expected reports that a network with this head may have a further output, or returns the doubt about it.
func (n *network) recogniseDense(m *match, perCell int, partial bool, expected func(output int) (ok bool, doubt string)) (
	evidence, doubt string,
) {
	cells := n.cells(m.boxes, perCell, partial)
	if m.boxes < 0 && n.metadata.Task == engine.Detect && m.classes == n.labels && n.labels > 0 {
		cells = "the file specifies detection"
	}
	if cells == "" {
		return "", ""
	}
	for i := range n.outputs {
		if slices.Contains(m.outputs, i) {
			continue
		}
		ok, doubt := expected(i)
		if doubt != "" {
			return "", doubt
		}
		if !ok {
			return "", fmt.Sprintf("there is a further output, %.40s (--layout %s accepts it anyway)", n.list([]int{i}), m.describe().Layout)
		}
	}
	if n.labels == 0 && n.specifiesColumns(m) {
		return cells + ", and the file specifies the task", ""
	}
	if n.labels == 0 {
		return "", missingLabels(m.classes)
	}
	return fmt.Sprintf("%s; %s", cells, plural(n.labels, "class")), ""
}

// missingLabels is the doubt about so many numbers after a box: keypoints, masks and an angle look the same.
func missingLabels(classes int) string {
	return fmt.Sprintf("no class names in the file: is this a detection, pose or mask model? (detection: name its %s with %s)",
		plural(classes, "class"), labelsFlag(classes))
}

// specifiesColumns reports whether the file's task alone determines what the numbers of a column are. Rows of a detector also differ by an
// objectness, which the task does not specify.
func (n *network) specifiesColumns(m *match) bool {
	about := m.describe()
	return n.metadata.Task == about.Task && (about.Task != engine.Detect || about.Layout == LayoutYOLOv8)
}

// labelsFlag returns how to give the labels of so many classes.
func labelsFlag(classes int) string {
	if classes == len(engine.KnownLabels("coco")) {
		return "--labels FILE or coco"
	}
	return "--labels FILE"
}

// noOther expects no further output.
func noOther(int) (bool, string) { return false, "" }

// recogniseCells is recogniseDense for heads with a row for each cell, unless rows of other heads are as long.
func (n *network) recogniseCells(m *match, partial bool) (evidence, doubt string) {
	if len(n.outputs) > 1 || n.labels > 0 && m.classes != n.labels && m.classes > 0 {
		return "", "" // yolov5 returns the doubt
	}
	return n.recogniseDense(m, 1, partial, noOther)
}

// isMatrix reports whether an output has the given numbers of rows and columns for each image.
func (n *network) isMatrix(output int, rows, columns int64) bool {
	shape := n.outputs[output].Shape
	return len(shape) == 3 && shape[1] == rows && shape[2] == columns
}

// columnsOrRows is embedded by heads of Ultralytics whose boxes have further numbers: columns as in LayoutYOLOv8 with these numbers after
// the scores, or without NMS a list of rows as in LayoutEnd2End with these numbers after the class.
type columnsOrRows struct {
	scoredLabels
	rows bool
}

func (h columnsOrRows) boxMap(m *match) (engine.BoxMap, bool) {
	if h.rows {
		return engine.BoxMap{}, false
	}
	return yolov8{}.boxMap(m)
}

// extra returns the position of the further numbers.
func (h columnsOrRows) extra(m *match) engine.Numbers {
	if h.rows {
		return engine.Numbers{Output: m.outputs[0], Offset: engine.CandidateFields, Step: int64(engine.CandidateFields + m.extra), Next: 1}
	}
	return engine.Numbers{Output: m.outputs[0], Offset: int64(4+m.classes) * m.boxes, Step: 1, Next: m.boxes}
}

// gather takes the boxes of an image as candidates.
func (h columnsOrRows) gather(in *input, to *boxes) error {
	if h.rows {
		return to.list(in, in.tensors[0].data, engine.CandidateFields+in.match.extra)
	}
	return to.scan(in)
}

// recogniseColumns returns the evidence for a map of columns whose task the file specifies.
func (n *network) recogniseColumns(m *match) (evidence, doubt string) {
	if n.metadata.Task != m.describe().Task || n.metadata.EndToEnd {
		return "", ""
	}
	if m.boxes < 0 && m.classes == n.labels && n.labels > 0 {
		return "the file specifies the task", ""
	}
	return n.recogniseDense(m, 1, false, noOther)
}

// recogniseRows returns the evidence for a short list of rows whose task the file specifies.
func (n *network) recogniseRows(m *match) (evidence, doubt string) {
	if n.metadata.Task != m.describe().Task || !n.metadata.EndToEnd || m.boxes > maxRows {
		return "", ""
	}
	return "the file specifies the task, and that its boxes are suppressed already", ""
}

// pairs lists pairs of outputs, the boxes first: one has four numbers for each box, the other its scores. Where both have four numbers, the
// names decide.
func (n *network) pairs() [][]int {
	var all [][]int
	for _, boxes := range n.floats() {
		for _, scores := range n.floats() {
			b, s := &n.outputs[boxes[0]], &n.outputs[scores[0]]
			if boxes[0] == scores[0] || len(b.Shape) != 3 || len(s.Shape) != 3 || b.Shape[2] != 4 || b.Shape[1] != s.Shape[1] {
				continue
			}
			if s.Shape[2] == 4 && !hasName(b.Name, "boxes", "pred_boxes", "dets", "bboxes") {
				continue
			}
			all = append(all, []int{boxes[0], scores[0]})
		}
	}
	return all
}

// measurePair measures a pair of outputs.
func measurePair(h head, shapes [][]int64) (sizes, error) {
	boxes, scores := shapes[0], shapes[1]
	if len(boxes) != 3 || len(scores) != 3 || boxes[2] != 4 || boxes[1] != scores[1] || scores[2] < 1 && scores[2] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: boxes[1], classes: int(max(scores[2], 0))}, nil
}

// pairMap returns the positions of boxes and scores in a pair of outputs.
func pairMap(m *match) (engine.BoxMap, bool) {
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: m.outputs[0], Step: 4, Next: 1},
		Scores: engine.Numbers{Output: m.outputs[1], Step: int64(m.classes), Next: 1},
		Count:  int(m.boxes), Classes: m.classes, ScaleX: 1, ScaleY: 1,
	}, m.boxes > 0 && m.classes > 0
}

// inShares makes the coordinates of a box map shares of the input's sides.
func (m *match) inShares(b engine.BoxMap) engine.BoxMap {
	b.ScaleX, b.ScaleY = float32(m.width), float32(m.height)
	return b
}
