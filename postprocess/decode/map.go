package decode

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

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
	stats := &d.img.stats
	stats.Invalid += len(d.candidates) - len(kept)
	stats.Candidates -= len(d.candidates) - len(kept)
	d.candidates = kept
}

// unfit says that the outputs of an image are not what the head reads.
func (d *Decoder) unfit() error {
	return fmt.Errorf("decode: %w: %s of %v", ErrOutput, d.layout, d.shapes)
}

// scanMap makes candidates of the boxes of a map.
func (d *Decoder) scanMap() error {
	m, ok := d.now.BoxMap()
	if !ok {
		return d.unfit()
	}
	boxes, scores, err := d.begin(&m)
	if err != nil {
		return err
	}
	d.gather(boxes, scores, &d.img.stats)
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
	impossible, invalid := d.scan.Skipped()
	stats.BadScores += impossible
	stats.Invalid += impossible + invalid
}
