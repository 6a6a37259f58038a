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

// recognise expects more rows than a list of suppressed boxes has, and a graph that shows a class number at their end. Where nothing shows
// it, three labels and more leave no room for scores; with fewer, rows of other heads would look the same.
func (deepStreamYOLO) recognise(n *network, m *match) (evidence, doubt string) {
	cells := n.cells(m.boxes, 1, false)
	other := LayoutYOLOX
	if cells == "" {
		cells = n.cells(m.boxes, 3, false)
		other = LayoutYOLOv5
	}
	if len(n.outputs) > 1 || m.boxes <= maxRows || cells == "" {
		return "", ""
	}
	switch {
	case n.endsInClass(m):
		return cells + ", and its graph ends rows with score and class", ""
	case n.sixUnclear(m):
		if n.labels == 2 {
			other = LayoutYOLOv8Rows
		}
		return "", "it could also be " + string(other) + " (select one with --layout)"
	case n.metadata.LastColumn == "" && n.labels >= 3:
		return cells + ", with corners, score and class, because " + plural(n.labels, "label") + " leave no room for scores", ""
	}
	return "", ""
}

// hasSix reports whether a single output has rows of six numbers.
func (n *network) hasSix(m *match) bool {
	shape := n.outputs[m.outputs[0]].Shape
	return len(n.outputs) == 1 && len(shape) == 3 && shape[2] == 6
}

// endsInClass reports whether the graph shows that rows of six numbers end with a class number.
func (n *network) endsInClass(m *match) bool {
	return n.hasSix(m) && n.metadata.LastColumn == engine.ClassColumn
}

// sixUnclear reports whether rows of six numbers, more than a list of suppressed boxes has, could end with a class number or with a score.
// The exporters of Ultralytics and YOLOv6 give their outputs names that those of DeepStream-Yolo do not use.
func (n *network) sixUnclear(m *match) bool {
	name := n.outputs[m.outputs[0]].Name
	return n.hasSix(m) && m.boxes > maxRows && n.metadata.LastColumn == "" && n.labels < 3 && n.metadata.Task == "" &&
		!hasName(name, "output0", "outputs")
}

func (deepStreamYOLO) newDecoder(s *settings) decoder { return &listDecoder{newBoxes(s)} }
