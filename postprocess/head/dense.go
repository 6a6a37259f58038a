package head

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// boxesWithClasses is what detectors give.
const boxesWithClasses = "box, class and score of each object"

// weighDense is the evidence for heads that have boxes in every cell of their scales: as many boxes as there are cells, and as many
// classes as there are labels. Neither is enough alone: keypoints, coefficients of masks and an angle stand where classes would, and only
// the labels tell them apart. raw reports an output that such a network gives beside the decoded one: the maps that it was decoded from.
func (n *network) weighDense(f *fit, perCell int, raw func(shape []int64) bool) (evidence, doubt string) {
	cells := n.cells(f.boxes, perCell)
	if f.boxes < 0 && n.metadata.Task == engine.Detect && f.classes == n.labels && n.labels > 0 {
		cells = "the file says that it detects"
	}
	if cells == "" {
		return "", ""
	}
	for i := range n.outputs {
		if i != f.outputs[0] && !raw(n.outputs[i].Shape) {
			return "", fmt.Sprintf("there is %s beside it, which a detector does not have (--layout %s takes it for one all the same)",
				n.name([]int{i}), f.describe().Layout)
		}
	}
	switch {
	case n.labels == 0:
		return "", fmt.Sprintf("nothing says that what follows a box is the scores of %s: keypoints, masks or an angle would look the same "+
			"(give the labels with --labels FILE, or confirm it with --layout %s)", plural(f.classes, "class"), f.describe().Layout)
	case f.classes != n.labels && f.classes > 0:
		return "", fmt.Sprintf("it has %s and the model names %s (give the labels that belong to it with --labels FILE)",
			plural(f.classes, "class"), plural(n.labels, "label"))
	}
	return fmt.Sprintf("%s, with %s as there are labels", cells, plural(n.labels, "class")), ""
}

// dense decodes a map of boxes and scores.
func (d *Decoder) dense(dst []postprocess.Finding) ([]postprocess.Finding, error) {
	boxes, scores, err := d.begin()
	if err != nil {
		return dst, err
	}
	d.gather(boxes, scores, &d.picture.stats)
	return d.finish(true, dst), nil
}

// begin prepares the scan of a map and gives its two parts. One whose scores lie neither class after class nor box after box is a mistake
// of its head.
func (d *Decoder) begin() (boxes, scores []float32, err error) {
	m, ok := d.fit.boxMap(&d.now)
	if !ok {
		return nil, nil, fmt.Errorf("decode: %w: %s of %v", ErrOutput, d.fit.describe().Layout, d.shapes)
	}
	boxes, scores = d.part(m.Boxes.Output), d.part(m.Scores.Output)
	columns := m.Scores.Step == 1 && m.Scores.Next == int64(m.Count) && !m.Objectness
	rows := m.Scores.Next == 1 && m.Scores.Step >= int64(m.Classes)
	before := m.Scores.Offset > 0 || !m.Objectness
	if !(columns || rows) || !before || !holds(&m.Boxes, m.Count, 4, len(boxes)) || !holds(&m.Scores, m.Count, m.Classes, len(scores)) {
		return nil, nil, fmt.Errorf("decode: %w: %d and %d numbers are not %+v", ErrOutput, len(boxes), len(scores), m)
	}
	d.scan.Begin(&m)
	return boxes[m.Boxes.Offset:], scores[m.Scores.Offset:], nil
}

// holds reports whether the last number lies within so many elements.
func holds(n *engine.Numbers, boxes, numbers, elements int) bool {
	return n.Offset+int64(boxes-1)*n.Step+int64(numbers-1)*n.Next < int64(elements)
}

// gather scans the map. A list that fills up is cut to the best MaxCandidates before the scan goes on, so that the memory is bounded
// whatever the threshold.
func (d *Decoder) gather(boxes, scores []float32, stats *Stats) {
	room := d.scan.Boxes()
	if d.MultiLabel {
		room = 2 * d.MaxCandidates
	}
	d.reserve(room)
	list := d.candidates[:0:room]
	for more := true; more; {
		before := len(list)
		list, more = d.scan.Next(boxes, scores, list)
		stats.Candidates += len(list) - before
		if more {
			list = d.best(list)
		}
	}
	d.candidates = list
	impossible, invalid := d.scan.PassedOver()
	stats.Impossible += impossible
	stats.Invalid += impossible + invalid
}
