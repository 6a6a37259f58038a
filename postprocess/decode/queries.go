package decode

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// detr decodes queries whose last logit is that of no object.
func (d *Decoder) detr(dst []postprocess.Detection) ([]postprocess.Detection, error) {
	boxes, logits, classes := d.parts[0].data, d.parts[1].data, d.now.Classes
	room := int(d.now.Boxes)
	if d.MultiLabel {
		room *= classes
	}
	d.reserve(room)
	if len(d.queries) < int(d.now.Boxes) {
		d.queries = make([]scan.Query, d.now.Boxes)
	}
	list, stats := d.candidates[:0], &d.img.stats
	// A class that is likelier than the threshold is so much likelier than no object, whatever the others are.
	for _, q := range d.queries[:scan.FilterQueries(d.queries, logits, classes, d.odds)] {
		share := 1 / q.Sum
		if !(q.Sum > 0 && q.Sum <= math.MaxFloat32) {
			stats.BadScores++
			stats.Invalid++
			continue
		}
		row := logits[int(q.Row)*(classes+1):][:classes]
		b := boxes[4*q.Row:][:4]
		x, y, width, height := b[0]*float32(d.fit.Width), b[1]*float32(d.fit.Height), b[2]*float32(d.fit.Width), b[3]*float32(d.fit.Height)
		c := scan.Candidate{Index: q.Row, Box: postprocess.Box{X1: x - width/2, Y1: y - height/2, X2: x + width/2, Y2: y + height/2}}
		first, last := int(q.Class), int(q.Class)
		if d.MultiLabel {
			first, last = 0, classes-1
		}
		for class := first; class <= last; class++ {
			c.Class, c.Score = int32(class), exp(row[class]-q.MaxLogit)*share
			number := d.fit.Numbering.Class(class)
			switch {
			case number < 0 || number >= d.classes || c.Score < d.thresholds[number]:
			case !sane(&c.Box):
				stats.Invalid++
			default:
				list = append(list, c)
			}
		}
	}
	stats.Candidates, d.candidates = len(list), list
	return d.finish(dst), nil
}

// listQueries takes rows of the centre and the sides as shares of the input, score and class for candidates.
func (d *Decoder) listQueries() {
	const fields = engine.CandidateFields
	rows, scaleX, scaleY := d.parts[0].data, float32(d.fit.Width), float32(d.fit.Height)
	d.reserve(len(rows) / fields)
	list, stats := d.candidates[:len(rows)/fields], &d.img.stats
	for i := range len(rows) / fields {
		row := [fields]float32(rows[i*fields:])
		x, y, width, height := row[0]*scaleX, row[1]*scaleY, row[2]*scaleX, row[3]*scaleY
		row[0], row[1], row[2], row[3] = x-width/2, y-height/2, x+width/2, y+height/2
		d.take(&row, &list[stats.Candidates], int32(i))
	}
	d.candidates = list[:stats.Candidates]
}
