package postprocess

import (
	"math"
)

// classify returns the TopK best classes as detections of the whole picture. Scores that are no probabilities, because a number is
// outside 0 to 1 or they do not add up to 1, are logits and go through softmax first. Thresholds and class filter apply after the
// choice of the best.
func (d *Decoder) classify(scores []float32, width, height int, dst []Detection, stats Stats) ([]Detection, Stats, error) {
	d.reserve(d.TopK + 1)
	list := d.candidates[:0]
	whole := Box{0, 0, float32(width), float32(height)}
	highest, sum, probabilities := math.Inf(-1), 0.0, true
	for class, score := range scores {
		if !finite(score) {
			stats.Invalid++
			continue
		}
		highest = max(highest, float64(score))
		sum += float64(score)
		probabilities = probabilities && score >= 0 && score <= maxScore
		at := len(list)
		for at > 0 && score > list[at-1].score {
			at--
		}
		if at == d.TopK {
			continue
		}
		list = append(list, candidate{})
		copy(list[at+1:], list[at:])
		list[at] = candidate{whole, score, int32(class)}
		if len(list) > d.TopK {
			list = list[:d.TopK]
		}
	}
	d.candidates = list
	const tolerance = 0.02 // what INT8 outputs miss a sum of 1 by
	if !probabilities || math.Abs(sum-1) > tolerance {
		softmax(list, scores, highest)
	}
	for _, c := range list {
		if c.score < d.scan.thresholds[c.class] {
			continue
		}
		stats.Candidates++
		dst = append(dst, Detection{Box: whole, Score: c.score, Class: int(c.class)})
	}
	return dst, stats, nil
}

// softmax replaces the logits of the list by probabilities over all scores.
func softmax(list []candidate, scores []float32, highest float64) {
	total := 0.0
	for _, score := range scores {
		if finite(score) {
			total += math.Exp(float64(score) - highest)
		}
	}
	for i := range list {
		list[i].score = float32(math.Exp(float64(list[i].score)-highest) / total)
	}
}
