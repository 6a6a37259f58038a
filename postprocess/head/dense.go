package head

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// boxesWithClasses is what detectors give.
const boxesWithClasses = "box, class and score of each object"

// weighDense is the evidence for heads that have boxes in every cell of their scales: as many boxes as there are cells, and as many
// classes as there are labels. Neither is enough alone: keypoints, coefficients of masks and an angle stand where classes would, and only
// the labels tell them apart. raw reports an output that such a network gives beside the decoded one: the maps that it was decoded from.
func (n *network) weighDense(f *fit, perCell int, partial bool, raw func(shape []int64) bool) (evidence, doubt string) {
	cells := n.cells(f.boxes, perCell, partial)
	if f.boxes < 0 && n.metadata.Task == engine.Detect && f.classes == n.labels && n.labels > 0 {
		cells = "the file says that it detects"
	}
	if cells == "" {
		return "", ""
	}
	for i := range n.outputs {
		if !slices.Contains(f.outputs, i) && !raw(n.outputs[i].Shape) {
			return "", fmt.Sprintf("there is %s beside it, which a detector does not have (--layout %s takes it for one all the same)",
				n.name([]int{i}), f.describe().Layout)
		}
	}
	switch {
	case n.labels == 0:
		return "", fmt.Sprintf("nothing says that what follows a box is the scores of %s: keypoints, masks or an angle would look the same "+
			"(give the labels with --labels FILE, or confirm it with --layout %s)", plural(f.classes, "class"), f.describe().Layout)
	}
	return fmt.Sprintf("%s, with %s as there are labels", cells, plural(n.labels, "class")), ""
}

// weighCells is the evidence for heads that have a row for each cell: weighDense, unless rows of other heads are as long.
func (n *network) weighCells(f *fit, partial bool) (evidence, doubt string) {
	if len(n.outputs) > 1 || n.labels > 0 && f.classes != n.labels && f.classes > 0 {
		return "", "" // yolov5 says what its relatives miss
	}
	return n.weighDense(f, 1, partial, func([]int64) bool { return false })
}

// cells are those of the boxes of the picture at hand, from any stride on.
func (f *fit) cells(partial bool) (g grid, ok bool) {
	for first := smallestStride; first <= largestFirst && !ok; first *= 2 {
		g, ok = gridOf(f.width, f.height, first, 1, f.boxes, partial)
	}
	return g, ok
}

// place has the candidates' raw numbers become corners in input pixels, and drops those that are none.
func (d *Decoder) place(corners func(c *scan.Candidate)) {
	kept := d.candidates[:0]
	for i := range d.candidates {
		c := &d.candidates[i]
		corners(c)
		if sane(&c.Box) {
			kept = append(kept, *c)
		}
	}
	stats := &d.picture.stats
	stats.Invalid += len(d.candidates) - len(kept)
	stats.Candidates -= len(d.candidates) - len(kept)
	d.candidates = kept
}

// labelsAsScored is the numbering of heads that score the classes of the labels and nothing else.
type labelsAsScored struct{}

func (labelsAsScored) number(n *network, f *fit) (numbering, bool) {
	if f.classes == 0 { // they come by number, or are not known yet
		return numbering{}, true
	}
	return n.number(f.classes, 0, false)
}

// dense decodes a map of boxes and scores.
func (d *Decoder) dense(dst []postprocess.Finding) ([]postprocess.Finding, error) {
	m, ok := d.fit.boxMap(&d.now)
	if !ok {
		return dst, d.unfit()
	}
	if err := d.scanMap(&m); err != nil {
		return dst, err
	}
	return d.finish(dst), nil
}

// unfit says that the outputs of a picture are not what the head reads.
func (d *Decoder) unfit() error {
	return fmt.Errorf("decode: %w: %s of %v", ErrOutput, d.fit.describe().Layout, d.shapes)
}

// scanMap makes candidates of the boxes of a map.
func (d *Decoder) scanMap(m *engine.BoxMap) error {
	boxes, scores, err := d.begin(m)
	if err != nil {
		return err
	}
	d.gather(boxes, scores, &d.picture.stats)
	return nil
}

// begin prepares the scan of a map and gives its two parts. One whose scores lie neither class after class nor box after box is a mistake
// of its head.
func (d *Decoder) begin(m *engine.BoxMap) (boxes, scores []float32, err error) {
	boxes, scores = d.part(m.Boxes.Output), d.part(m.Scores.Output)
	columns := m.Scores.Step == 1 && m.Scores.Next == int64(m.Count) && !m.Objectness
	rows := m.Scores.Next == 1 && m.Scores.Step >= int64(m.Classes)
	before := m.Scores.Offset > 0 || !m.Objectness
	if !(columns || rows) || !before || !holds(&m.Boxes, m.Count, 4, len(boxes)) || !holds(&m.Scores, m.Count, m.Classes, len(scores)) {
		return nil, nil, fmt.Errorf("decode: %w: %d and %d numbers are not %+v", ErrOutput, len(boxes), len(scores), *m)
	}
	d.scan.Begin(m)
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
