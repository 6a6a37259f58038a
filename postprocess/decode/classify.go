package decode

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// classify returns the TopK best classes as findings of the whole picture. Scores that are no probabilities, because a number is outside 0
// to 1 or they do not add up to 1, are logits and go through softmax first. Thresholds and class filter apply after the choice of the
// best.
func (d *Decoder) classify(dst []postprocess.Finding) ([]postprocess.Finding, error) {
	scores := d.parts[0].data
	d.reserve(d.TopK + 1)
	list := d.candidates[:0]
	whole := postprocess.Box{X2: float32(d.picture.width), Y2: float32(d.picture.height)}
	highest, sum, probabilities := math.Inf(-1), 0.0, true
	for class, score := range scores {
		if !finite(score) {
			d.picture.stats.Invalid++
			d.picture.stats.Impossible++
			continue
		}
		highest = max(highest, float64(score))
		sum += float64(score)
		probabilities = probabilities && score >= 0 && score <= scan.MaxScore
		at := len(list)
		for at > 0 && score > list[at-1].Score {
			at--
		}
		if at == d.TopK {
			continue
		}
		list = append(list, scan.Candidate{})
		copy(list[at+1:], list[at:])
		list[at] = scan.Candidate{Box: whole, Score: score, Class: int32(class)}
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
		if c.Score < d.thresholds[c.Class] {
			continue
		}
		d.picture.stats.Candidates++
		dst = append(dst, postprocess.Finding{Box: whole, Score: c.Score, Class: int(c.Class)})
	}
	return dst, nil
}

// softmax replaces the logits of the list by probabilities over all scores.
func softmax(list []scan.Candidate, scores []float32, highest float64) {
	total := 0.0
	for _, score := range scores {
		if finite(score) {
			total += math.Exp(float64(score) - highest)
		}
	}
	for i := range list {
		list[i].Score = float32(math.Exp(float64(list[i].Score)-highest) / total)
	}
}
