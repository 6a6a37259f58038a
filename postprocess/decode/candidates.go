package decode

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// list takes rows of so many numbers for candidates, as an engine lists them on its device and as heads that suppress for themselves give
// them: x1, y1, x2, y2 in input pixels, score and class come first. The order of the rows means nothing.
func (d *Decoder) list(rows []float32, width int) error {
	if len(rows)%width != 0 {
		return fmt.Errorf("decode: %w: %d numbers are not rows of %d", ErrOutput, len(rows), width)
	}
	d.reserve(len(rows) / width)
	list, stats := d.candidates[:len(rows)/width], &d.img.stats
	for row := range len(rows) / width {
		d.take((*[engine.CandidateFields]float32)(rows[row*width:]), &list[stats.Candidates], int32(row))
	}
	d.candidates = list[:stats.Candidates]
	return nil
}

// take writes a row to out and counts what it is.
func (d *Decoder) take(row *[engine.CandidateFields]float32, out *scan.Candidate, index int32) {
	stats := &d.img.stats
	out.Index = index
	switch d.candidate(row, out) {
	case wanted:
		stats.Candidates++
	case impossible:
		stats.BadScores++
		stats.Invalid++
	case invalid:
		stats.Invalid++
	}
}

type verdict uint8

const (
	unwanted verdict = iota
	wanted
	impossible
	invalid
)

// maxClass is what no class number reaches.
const maxClass = 1 << 20

// candidate writes a row to out, where it is wanted.
func (d *Decoder) candidate(row *[engine.CandidateFields]float32, out *scan.Candidate) verdict {
	score, class := row[4], row[5]
	if d.padding(score) {
		return unwanted
	}
	if !(score >= scan.MinScore && score <= scan.MaxScore && class >= 0 && class < maxClass) || class != float32(int32(class)) {
		return impossible
	}
	out.Box, out.Score, out.Class = postprocess.Box{X1: row[0], Y1: row[1], X2: row[2], Y2: row[3]}, score, int32(class)
	number := d.fit.Numbering.Class(int(class))
	threshold := float32(0)
	switch {
	case d.columns > 0 && int(class) >= d.columns, d.classes > 0 && number >= d.classes:
		return impossible
	case number < 0: // background
		return unwanted
	case d.classes == 0:
		threshold = d.threshold(number)
	default:
		threshold = d.thresholds[number]
	}
	if score < threshold {
		return unwanted
	}
	if !sane(&out.Box) {
		return invalid
	}
	return wanted
}

// padding says of a score that nothing else of its row matters: most rows of an end-to-end head are padding.
func (d *Decoder) padding(score float32) bool {
	return score < d.MinScore && score >= scan.MinScore && d.ClassMinScores == nil
}

// sane reports whether a box is one, as the scan in C does.
func sane(b *postprocess.Box) bool {
	const most = scan.MaxCoordinate
	return b.X1 < b.X2 && b.Y1 < b.Y2 && b.X1 > -most && b.Y1 > -most && b.X2 < most && b.Y2 < most
}
