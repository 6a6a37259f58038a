package decode

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// sumTolerance is what the probabilities of INT8 outputs miss a sum of 1 by.
const sumTolerance = 0.02

// classify returns classes as detections of the whole image: the TopK best ones where they exclude each other, every one over its threshold
// where each is there or not.
func (d *Decoder) classify(dst []postprocess.Detection) ([]postprocess.Detection, error) {
	scores := d.parts[0].data
	highest, sum, shares := math.Inf(-1), 0.0, true
	for _, score := range scores {
		if !finite(score) {
			d.img.stats.Invalid++
			d.img.stats.BadScores++
			continue
		}
		highest = max(highest, float64(score))
		sum += float64(score)
		shares = shares && score >= 0 && score <= scan.MaxScore
	}
	whole := shares && math.Abs(sum-1) <= sumTolerance
	independent := d.activation == engine.Sigmoid
	if d.activation == "" { // probabilities that do not share 1, and a single one of those, are each for itself
		independent = shares && !whole || len(scores) == 1
	}
	if independent {
		return d.classesPresent(dst, scores, shares), nil
	}
	list := d.highest(scores)
	if !whole {
		softmax(list, scores, highest)
	}
	for _, c := range list {
		threshold := d.thresholds[c.Class]
		if c.Score < threshold && !(d.TopAlways && finite(threshold)) {
			continue
		}
		d.img.stats.Candidates++
		dst = append(dst, d.ofImage(c.Score, c.Class))
	}
	return dst, nil
}

// ofImage is a class of the whole image.
func (d *Decoder) ofImage(score float32, class int32) postprocess.Detection {
	return postprocess.Detection{
		Box: postprocess.Box{X2: float32(d.img.width), Y2: float32(d.img.height)}, Score: score, Class: int(class),
	}
}

// highest lists the TopK best scores, best first. Classes that are not wanted count: thresholds and class filter apply after the choice.
func (d *Decoder) highest(scores []float32) []scan.Candidate {
	d.reserve(d.TopK + 1)
	list := d.candidates[:0]
	for class, score := range scores {
		if !finite(score) {
			continue
		}
		at := len(list)
		for at > 0 && score > list[at-1].Score {
			at--
		}
		if at == d.TopK {
			continue
		}
		list = append(list, scan.Candidate{})
		copy(list[at+1:], list[at:])
		list[at] = scan.Candidate{Score: score, Class: int32(class)}
		if len(list) > d.TopK {
			list = list[:d.TopK]
		}
	}
	d.candidates = list
	return list
}

// classesPresent appends every class over its threshold, best first and at most Limit. Scores that are no shares are logits.
func (d *Decoder) classesPresent(dst []postprocess.Detection, scores []float32, shares bool) []postprocess.Detection {
	d.reserve(len(scores))
	list := d.candidates[:0]
	for class, score := range scores {
		if !finite(score) {
			continue
		}
		if !shares {
			score = float32(1 / (1 + math.Exp(-float64(score))))
		}
		score = max(score, 0) // no negative 0
		if score >= d.thresholds[class] {
			list = append(list, scan.Candidate{Score: score, Class: int32(class)})
		}
	}
	d.candidates = list
	stats := &d.img.stats
	stats.Candidates += len(list)
	keys := sortKeys(d.keys, list)
	sortByScore(keys, list)
	for i, key := range keys {
		if i == d.Limit {
			stats.Suppressed += len(keys) - i
			break
		}
		c := &list[uint32(key)]
		dst = append(dst, d.ofImage(c.Score, c.Class))
	}
	return dst
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
