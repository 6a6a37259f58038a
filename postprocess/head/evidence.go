package head

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// boxesWithClasses is what detectors give.
const boxesWithClasses = "box, class and score of each object"

// weighDense is the evidence for heads that have boxes in every cell of their scales: as many boxes as there are cells, and as many
// classes as there are labels. Neither is enough alone: keypoints, coefficients of masks and an angle stand where classes would, and only
// the labels tell them apart. raw reports an output that such a network gives beside the decoded one: the maps that it was decoded from.
func (n *network) weighDense(f *Match, perCell int, partial bool, raw func(shape []int64) bool) (evidence, doubt string) {
	cells := n.cells(f.Boxes, perCell, partial)
	if f.Boxes < 0 && n.metadata.Task == engine.Detect && f.Classes == n.labels && n.labels > 0 {
		cells = "the file says that it detects"
	}
	if cells == "" {
		return "", ""
	}
	for i := range n.outputs {
		switch {
		case slices.Contains(f.Outputs, i) || raw(n.outputs[i].Shape):
		case f.Describe().Layout == LayoutYOLOv8 && slices.Equal(n.outputs[i].Shape, n.outputs[f.Outputs[0]].Shape):
			if i < f.Outputs[0] {
				return "", "" // said of the first one
			}
			return "", fmt.Sprintf("there is %s beside it: YOLOv9 trained with two heads gives that of its training first (export it converted, as "+
				"its repository's reparameterization does, or let --layout %s read the first)", n.name([]int{i}), LayoutYOLOv8)
		case f.Describe().Layout == LayoutYOLOv8 && n.matrix(i, 4, f.Boxes):
			return "", fmt.Sprintf("it is the scores of %d classes for the boxes %s beside it (join the two in the file, boxes first, to one "+
				"output)", f.Classes+4, n.name([]int{i}))
		case f.Describe().Layout == LayoutYOLOv8 && n.matrix(i, f.Boxes, 4):
			return "", fmt.Sprintf("it is the scores of %d classes, class after class, for the boxes %s, as PP-YOLOE of PaddleDetection gives them "+
				"(transpose the scores in the file to a row for each box and name --layout %s)", f.Classes+4, n.name([]int{i}), LayoutYOLONAS)
		default:
			return "", fmt.Sprintf("there is %s beside it, which a detector does not have (--layout %s takes it for one all the same)",
				n.name([]int{i}), f.Describe().Layout)
		}
	}
	switch {
	case n.labels == 0:
		return "", fmt.Sprintf("nothing says that what follows a box is the scores of %s: keypoints, masks or an angle would look the same "+
			"(give the labels with --labels FILE, or confirm it with --layout %s)", Plural(f.Classes, "class"), f.Describe().Layout)
	}
	return fmt.Sprintf("%s, with %s as there are labels", cells, Plural(n.labels, "class")), ""
}

// matrix reports whether an output has so many rows and columns for each image.
func (n *network) matrix(output int, rows, columns int64) bool {
	shape := n.outputs[output].Shape
	return len(shape) == 3 && shape[1] == rows && shape[2] == columns
}

// weighCells is the evidence for heads that have a row for each cell: weighDense, unless rows of other heads are as long.
func (n *network) weighCells(f *Match, partial bool) (evidence, doubt string) {
	if len(n.outputs) > 1 || n.labels > 0 && f.Classes != n.labels && f.Classes > 0 {
		return "", "" // yolov5 says what its relatives miss
	}
	return n.weighDense(f, 1, partial, func([]int64) bool { return false })
}

// labelsAsScored is the numbering of heads that score the classes of the labels and nothing else.
type labelsAsScored struct{}

func (labelsAsScored) number(n *network, f *Match) (Numbering, bool) {
	if f.Classes == 0 { // they come by number, or are not known yet
		return Numbering{}, true
	}
	return n.number(f.Classes, 0, false)
}
