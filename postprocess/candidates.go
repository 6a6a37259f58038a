package postprocess

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// list takes rows of x1, y1, x2, y2 in input pixels, score and class for candidates, as an engine lists them on its device and as heads
// that suppress for themselves give them. The order of the rows means nothing.
func (d *Decoder) list(rows []float32) error {
	const fields = engine.CandidateFields
	if len(rows)%fields != 0 {
		return fmt.Errorf("decode: %w: %d numbers are not rows of %d", ErrOutput, len(rows), fields)
	}
	d.reserve(len(rows) / fields)
	list, stats := d.candidates[:len(rows)/fields], &d.picture.stats
	for ; len(rows) > 0; rows = rows[fields:] {
		switch d.candidate((*[fields]float32)(rows), &list[stats.Candidates]) {
		case wanted:
			stats.Candidates++
		case impossible:
			stats.Impossible++
			stats.Invalid++
		case invalid:
			stats.Invalid++
		}
	}
	d.candidates = list[:stats.Candidates]
	return nil
}

type verdict uint8

const (
	unwanted verdict = iota
	wanted
	impossible
	invalid
)

// What the scan in C refuses as well.
const (
	maxCoordinate = 1e6
	minScore      = -engine.ScoreTolerance
	maxScore      = 1 + engine.ScoreTolerance
	maxClass      = 1 << 20
)

// candidate writes a row to out, where it is wanted.
func (d *Decoder) candidate(row *[engine.CandidateFields]float32, out *candidate) verdict {
	score, class := row[4], row[5]
	if score < d.Threshold && score >= minScore && d.ClassThresholds == nil {
		// Most rows of an end-to-end head are padding; whatever else is in them does not matter.
		return unwanted
	}
	if !(score >= minScore && score <= maxScore && class >= 0 && class < maxClass) || class != float32(int32(class)) {
		return impossible
	}
	*out = candidate{Box{row[0], row[1], row[2], row[3]}, score, int32(class)}
	threshold := float32(0)
	switch {
	case d.classes == 0:
		threshold = d.threshold(int(class))
	case int(class) < d.classes:
		threshold = d.scan.thresholds[int(class)]
	default:
		return impossible
	}
	if score < threshold {
		return unwanted
	}
	if !out.sane() {
		return invalid
	}
	return wanted
}

func (c *candidate) sane() bool {
	return c.X1 < c.X2 && c.Y1 < c.Y2 && c.X1 > -maxCoordinate && c.Y1 > -maxCoordinate && c.X2 < maxCoordinate && c.Y2 < maxCoordinate
}
