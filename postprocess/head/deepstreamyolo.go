package head

import "github.com/edge-infer/edge-infer/engine"

// LayoutDeepStreamYOLO is [B,N,6]: a row for each cell with the box's corners x1, y1, x2, y2 in input pixels, the score of its best class,
// and that class. Overlapping boxes are not suppressed. Source: the exporters of marcoslucianops/DeepStream-Yolo.
const LayoutDeepStreamYOLO Layout = "deepstream-yolo"

type deepStreamYOLO struct {
	scoredLabels
	noBoxMap
}

func (deepStreamYOLO) describe() Description {
	return Description{
		Layout: LayoutDeepStreamYOLO, Task: engine.Detect, Form: "[B,N,6] with a row for each cell", Networks: "exports of DeepStream-Yolo",
		Gives: boxesWithClasses,
	}
}

func (deepStreamYOLO) findOutputs(n *network) [][]int { return n.floats() }

func (h deepStreamYOLO) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] != 6 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[1]}, nil
}

// recognise expects more rows than a list of suppressed boxes has, and labels. Without them, and with one label, the numbers could be an
// objectness and a score, for which other heads return the doubt; with two labels the scores of both classes.
func (deepStreamYOLO) recognise(n *network, m *match) (evidence, doubt string) {
	cells := n.cells(m.boxes, 1, false)
	if cells == "" {
		cells = n.cells(m.boxes, 3, false)
	}
	if len(n.outputs) > 1 || m.boxes <= maxRows || cells == "" || n.labels < 3 {
		return "", ""
	}
	return cells + ", with corners, score and class, because " + plural(n.labels, "label") + " leave no room for scores", ""
}

func (deepStreamYOLO) newDecoder(s *settings) decoder { return &listDecoder{newBoxes(s)} }
