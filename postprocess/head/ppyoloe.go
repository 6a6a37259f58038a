package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutPPYOLOE is [B,N,4] and [B,nc,N]: for each cell the corners x1, y1, x2, y2 in input pixels, because the further input scale_factor
// specifies that the image was not scaled, and the scores of the classes, after their sigmoid, class after class. Source: PaddleDetection's
// export without its suppression.
const LayoutPPYOLOE Layout = "pp-yoloe"

type ppYOLOE struct{ scoredLabels }

func (ppYOLOE) describe() Description {
	return Description{
		Layout: LayoutPPYOLOE, Task: engine.Detect, Form: "[B,N,4] with [B,nc,N] and a box for each cell",
		Networks: "PP-YOLOE of PaddleDetection without its suppression", Gives: boxesWithClasses,
		Unspecified: "how the images of " + string(LayoutPPYOLOE) + " are scaled: imagenet for PP-YOLOE, rtdetr for PP-YOLOE+",
	}
}

// findOutputs lists pairs of boxes and scores.
func (h ppYOLOE) findOutputs(n *network) (all [][]int) {
	for _, boxes := range n.floats() {
		for _, scores := range n.floats() {
			pair := []int{boxes[0], scores[0]}
			if _, err := h.measure(n.shapes(pair)); err == nil && boxes[0] != scores[0] {
				all = append(all, pair)
			}
		}
	}
	return all
}

func (h ppYOLOE) measure(shapes [][]int64) (sizes, error) {
	boxes, scores := shapes[0], shapes[1]
	if len(boxes) != 3 || len(scores) != 3 || boxes[2] != 4 || boxes[1] != scores[2] || scores[1] < 1 && scores[1] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: boxes[1], classes: int(max(scores[1], 0))}, nil
}

func (ppYOLOE) recognise(n *network, m *match) (evidence, doubt string) {
	if m.boxes < 0 {
		return "", ""
	}
	return n.recogniseDense(m, 1, false, noOther)
}

func (ppYOLOE) boxMap(m *match) (engine.BoxMap, bool) {
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: m.outputs[0], Step: 4, Next: 1},
		Scores: engine.Numbers{Output: m.outputs[1], Step: 1, Next: m.boxes},
		Count:  int(m.boxes), Classes: m.classes, ScaleX: 1, ScaleY: 1, Corners: true,
	}, m.boxes > 0 && m.classes > 0
}

func (ppYOLOE) newDecoder(s *settings) decoder { return newDenseDecoder(s) }
