package postprocess

import "fmt"

// candidateFields is the length of one row of DecodeCandidates.
const candidateFields = 6

// DecodeCandidates decodes a list of boxes that the engine has already filtered: rows of x1, y1, x2, y2 in input pixels, score, class. For
// the same network output it gives the same detections as Decode, in whatever order the rows are; without MultiLabel
// the engine must have reduced each box to its best class.
func (d *Decoder) DecodeCandidates(rows []float32, transform Transform, width, height int, dst []Detection) ([]Detection, Stats, error) {
	var stats Stats
	if err := d.checkCall(transform, width, height); err != nil {
		return dst, stats, err
	}
	if len(rows)%candidateFields != 0 {
		return dst, stats, fmt.Errorf("decode: %w: %d numbers are not rows of %d", ErrOutput, len(rows), candidateFields)
	}
	d.reserve(len(rows) / candidateFields)
	list := d.candidates[:0]
	for ; len(rows) > 0; rows = rows[candidateFields:] {
		found, verdict := d.candidate((*[candidateFields]float32)(rows))
		switch verdict {
		case wanted:
			list = append(list, found)
		case invalid:
			stats.Invalid++
		}
	}
	d.candidates = list
	stats.Candidates = len(list)
	dst = d.finish(transform, width, height, d.head.layout != LayoutEnd2End, dst, &stats)
	return dst, stats, nil
}

type verdict uint8

const (
	unwanted verdict = iota
	wanted
	invalid
)

// What the scan in C refuses as well.
const (
	maxCoordinate = 1e6
	maxScore      = 1 + 1.0/64
	maxClass      = 1 << 20
)

func (d *Decoder) candidate(row *[candidateFields]float32) (candidate, verdict) {
	score, class := row[4], row[5]
	if score < d.Confidence && d.ClassConfidence == nil {
		// Most rows of an end-to-end head are padding; whatever else is in them does not matter.
		return candidate{}, unwanted
	}
	if !(score <= maxScore && class >= 0 && class < maxClass) || class != float32(int32(class)) {
		return candidate{}, invalid
	}
	found := candidate{Box{row[0], row[1], row[2], row[3]}, score, int32(class)}
	threshold := float32(0)
	switch {
	case d.head.classes == 0:
		threshold = d.threshold(int(class))
	case int(class) < d.head.classes:
		threshold = d.scan.thresholds[int(class)]
	default:
		return candidate{}, invalid
	}
	if score < threshold {
		return candidate{}, unwanted
	}
	if !found.sane() {
		return candidate{}, invalid
	}
	return found, wanted
}

func (c *candidate) sane() bool {
	return c.X1 < c.X2 && c.Y1 < c.Y2 && c.X1 > -maxCoordinate && c.Y1 > -maxCoordinate && c.X2 < maxCoordinate && c.Y2 < maxCoordinate
}
