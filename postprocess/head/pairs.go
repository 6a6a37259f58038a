package head

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// pairs lists two outputs each, the boxes first: four numbers for each box in one, its scores in the other. Where both have four numbers a
// box, the names tell.
func (n *network) pairs() [][]int {
	var all [][]int
	for _, boxes := range n.single() {
		for _, scores := range n.single() {
			b, s := &n.outputs[boxes[0]], &n.outputs[scores[0]]
			if boxes[0] == scores[0] || len(b.Shape) != 3 || len(s.Shape) != 3 || b.Shape[2] != 4 || b.Shape[1] != s.Shape[1] {
				continue
			}
			if s.Shape[2] == 4 && !called(b.Name, boxNames...) {
				continue
			}
			all = append(all, []int{boxes[0], scores[0]})
		}
	}
	return all
}

// boxNames are what exports call coordinates.
var boxNames = []string{"boxes", "pred_boxes", "dets", "bboxes"}

// measurePair measures a pair.
func measurePair(h head, shapes [][]int64) (Sizes, error) {
	boxes, scores := shapes[0], shapes[1]
	if len(boxes) != 3 || len(scores) != 3 || boxes[2] != 4 || boxes[1] != scores[1] || scores[2] < 1 && scores[2] != -1 {
		return Sizes{}, misfit(h, shapes)
	}
	return Sizes{Boxes: boxes[1], Classes: int(max(scores[2], 0))}, nil
}

// pairMap is where boxes and scores of a pair lie.
func pairMap(f *Match) (engine.BoxMap, bool) {
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: f.Outputs[0], Step: 4, Next: 1},
		Scores: engine.Numbers{Output: f.Outputs[1], Step: int64(f.Classes), Next: 1},
		Count:  int(f.Boxes), Classes: f.Classes, ScaleX: 1, ScaleY: 1,
	}, f.Boxes > 0 && f.Classes > 0
}

// shares has the coordinates of a map be shares of the input's sides.
func (f *Match) shares(m engine.BoxMap) engine.BoxMap {
	m.ScaleX, m.ScaleY = float32(f.Width), float32(f.Height)
	return m
}

// named finds outputs by what exports call them, a list of names for each; nil when one is missing.
func (n *network) named(names ...[]string) []int {
	var all []int
	for _, possible := range names {
		at := slices.IndexFunc(n.outputs, func(o engine.TensorInfo) bool { return called(o.Name, possible...) })
		if at < 0 || slices.Contains(all, at) {
			return nil
		}
		all = append(all, at)
	}
	return all
}
