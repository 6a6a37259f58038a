package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// Roles of the outputs of heads that choose boxes for themselves and give each one score and a class number.
const (
	SelectedBoxes = iota
	SelectedScores
	SelectedClasses
	SelectedCount // how many of them there are; absent where all count
)

// measureChosen checks that the outputs are as many boxes, scores and class numbers, after so many dimensions of a batch.
func measureChosen(h head, shapes [][]int64, batch int) (Sizes, error) {
	boxes, scores, classes := shapes[SelectedBoxes], shapes[SelectedScores], shapes[SelectedClasses]
	if len(boxes) != batch+2 || len(scores) != batch+1 || !slices.Equal(scores, classes) || !slices.Equal(scores, boxes[:batch+1]) ||
		boxes[batch+1] != 4 && boxes[batch+1] != -1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: boxes[batch]}, nil
}

// integer reports whether an output holds integers.
func (n *network) integer(output int) bool {
	t := n.outputs[output].Type
	return t == engine.Int32 || t == engine.Int64
}
