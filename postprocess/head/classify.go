package head

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutClassify is [B,nc], perhaps with sides of 1 after it: a score for each class of the whole image, probabilities or logits.
const LayoutClassify Layout = "classify"

type classify struct {
	scoredLabels
	noBoxMap
	activation engine.Activation
}

func (classify) configure(n *network) head { return classify{activation: n.metadata.Activation} }

func (h classify) describe() Description {
	d := Description{
		Layout: LayoutClassify, Task: engine.Classify, Form: "[B,nc]", Networks: "classifiers of Ultralytics, torchvision and others",
		Gives: "the best classes of the image", Unspecified: "how a classifier's images are cropped and scaled",
	}
	if h.activation == engine.Sigmoid {
		d.Gives = "every class of the image that is over the threshold, each for itself"
	}
	return d
}

func (classify) findOutputs(n *network) [][]int { return n.floats() }

func (h classify) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) < 2 || slices.ContainsFunc(shape[2:], func(size int64) bool { return size != 1 }) {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{classes: int(max(shape[1], 0))}, nil
}

// recognise wants evidence that the numbers are classes: an embedding has the same form.
func (classify) recognise(n *network, m *match) (evidence, doubt string) {
	switch {
	case len(n.outputs) > 1:
		return "", ""
	case n.metadata.Task == engine.Classify:
		return "the file specifies classification", ""
	case n.labels > 0:
		return "scores of " + plural(n.labels, "class"), ""
	}
	return "", "no class names in the file: are its numbers classes? (name them with --labels FILE)"
}

func (h classify) newDecoder(s *settings) decoder {
	return &classifyDecoder{settings: s, activation: h.activation}
}

type classifyDecoder struct {
	*settings
	activation engine.Activation
	candidates []scan.Candidate
	keys       []uint64
}

// sumTolerance is how far the sum of INT8 probabilities may be from 1.
const sumTolerance = 0.02

// decode returns classes as detections of the whole image: the TopK best where they are exclusive, else every one above its minimum score.
func (d *classifyDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	scores := in.tensors[0].data
	highest, sum, shares := math.Inf(-1), 0.0, true
	for _, score := range scores {
		if !finite(score) {
			in.stats.Invalid++
			in.stats.BadScores++
			continue
		}
		highest = max(highest, float64(score))
		sum += float64(score)
		shares = shares && score >= 0 && score <= scan.MaxScore
	}
	probabilities := shares && math.Abs(sum-1) <= sumTolerance
	independent := d.activation == engine.Sigmoid
	if d.activation == "" { // shares that do not sum to 1, and a single one, are independent
		independent = shares && !probabilities || len(scores) == 1
	}
	if independent {
		return d.independent(in, dst, scores, shares), nil
	}
	list := d.best(scores)
	if !probabilities {
		softmax(list, scores, highest)
	}
	for _, c := range list {
		threshold := d.minScores[c.Class]
		if c.Score < threshold && !(d.TopAlways && finite(threshold)) {
			continue
		}
		in.stats.Candidates++
		dst = append(dst, postprocess.Detection{Box: in.wholeImage(), Score: c.Score, Class: int(c.Class)})
	}
	return dst, nil
}

// best lists the TopK best scores, best first. Unwanted classes count: minimum scores and the class filter apply after the choice.
func (d *classifyDecoder) best(scores []float32) []scan.Candidate {
	list := resize(&d.candidates, d.TopK+1)[:0]
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
	return list
}

// independent appends every class above its minimum score, best first and at most Limit. Scores that are no shares are logits.
func (d *classifyDecoder) independent(in *input, dst []postprocess.Detection, scores []float32, shares bool) []postprocess.Detection {
	list := resize(&d.candidates, len(scores))[:0]
	for class, score := range scores {
		if !finite(score) {
			continue
		}
		if !shares {
			score = scan.Sigmoid(score)
		}
		score = max(score, 0) // no negative 0
		if score >= d.minScores[class] {
			list = append(list, scan.Candidate{Score: score, Class: int32(class)})
		}
	}
	stats := &in.stats
	stats.Candidates += len(list)
	keys := sortKeys(resize(&d.keys, len(scores)), list)
	sortByScore(keys, list)
	for i, key := range keys {
		if i == d.Limit {
			stats.Suppressed += len(keys) - i
			break
		}
		c := &list[uint32(key)]
		dst = append(dst, postprocess.Detection{Box: in.wholeImage(), Score: c.Score, Class: int(c.Class)})
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
