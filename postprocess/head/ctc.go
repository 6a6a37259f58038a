package head

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutCTC is [B,T,nc]: for each of T steps along a line of text the scores of the characters and of the blank between two, which is class
// 0. In LayoutCTCBlankLast the blank is the last class.
const (
	LayoutCTC          Layout = "ctc"
	LayoutCTCBlankLast Layout = "ctc-blank-last"
)

// ctc reads lines of text, number plates for instance. Its labels are its alphabet, usually without the blank.
type ctc struct {
	noBoxMap
	blankLast bool
}

func (h ctc) describe() Description {
	d := Description{
		Layout: LayoutCTC, Task: engine.Read, Form: "[B,T,nc]", Networks: "text readers of PaddleOCR, CRNN and others, blank first",
		Gives: "the characters of a line of text, in their order", Unspecified: "how a text reader's images are scaled",
	}
	if h.blankLast {
		d.Layout = LayoutCTCBlankLast
		d.Networks = "text readers of Keras, LPRNet and others, blank last"
	}
	return d
}

func (ctc) findOutputs(n *network) [][]int { return n.floats() }

func (h ctc) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] == 1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[1], classes: int(max(shape[2], 0))}, nil
}

// recognise never has evidence: a list of boxes has the same form, so that the layout must be selected.
func (ctc) recognise(*network, *match) (evidence, doubt string) { return "", "" }

// numbering leaves the blank out if the labels do. Where there is a label for each class, the blank still is the first or the last.
func (h ctc) numbering(n *network, m *match) (numbering, bool) {
	switch {
	case n.labels == 0 || m.classes == 0 || n.labels == m.classes || h.blankLast && n.labels == m.classes-1:
		return numbering{}, true
	case !h.blankLast && n.labels == m.classes-1:
		return numbering{first: -1}, true
	}
	return numbering{}, false
}

func (h ctc) newDecoder(s *settings) decoder { return &ctcDecoder{s, h.blankLast} }

type ctcDecoder struct {
	*settings
	blankLast bool
}

// decode decodes a line of text greedily, by connectionist temporal classification (Graves et al. 2006): every step has its likeliest
// class, equal ones in a row count once, and blanks separate characters. Each character is a detection, in reading order, with the highest
// probability of its steps and the part of the image that they see.
func (d *ctcDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	scores, classes := in.tensors[0].data, d.columns
	if classes == 0 {
		return dst, nil
	}
	blank := 0
	if d.blankLast {
		blank = classes - 1
	}
	steps, before, first := len(scores)/classes, blank, len(dst)
	open := false // the last detection goes on with the same class
	for step := range steps {
		class, score, ok := likeliest(scores[step*classes:][:classes])
		if !ok {
			in.stats.Invalid++
			in.stats.BadScores++
			class = blank
		}
		switch {
		case class == blank:
			open = false
		case class == before && open:
			last := &dst[len(dst)-1]
			last.X2 = d.stepStart(in, step+1, steps)
			last.Score = max(last.Score, score)
		default:
			number := d.match.numbers.class(class)
			open = number >= 0
			if !open {
				break
			}
			if len(dst) == cap(dst) {
				dst = slices.Grow(dst, 1)
			}
			box := postprocess.Box{X1: d.stepStart(in, step, steps), X2: d.stepStart(in, step+1, steps), Y2: float32(in.height)}
			dst = append(dst, postprocess.Detection{Box: box, Score: score, Class: number})
		}
		before = class
	}
	return d.filter(in, dst, first), nil
}

// filter drops the characters below their minimum scores, and those beyond the limit.
func (d *ctcDecoder) filter(in *input, dst []postprocess.Detection, first int) []postprocess.Detection {
	kept, stats := first, &in.stats
	for i := first; i < len(dst); i++ {
		threshold := d.MinScore
		if class := dst[i].Class; class < len(d.minScores) {
			threshold = d.minScores[class]
		}
		switch {
		case dst[i].Score < threshold:
			continue
		case kept-first == d.Limit:
			stats.Truncated++
		default:
			dst[kept] = dst[i]
			kept++
		}
		stats.Candidates++
	}
	return dst[:kept]
}

// stepStart returns where a step begins in the image. Steps in the padding begin at the image's border.
func (d *ctcDecoder) stepStart(in *input, step, steps int) float32 {
	at := float32(step) * float32(d.match.width) / float32(steps)
	return min(max((at-in.transform.PadX)/in.transform.ScaleX, 0), float32(in.width))
}

// likeliest returns the class with the highest score of a step and its probability: the score if those of the step sum to 1, else its
// softmax. It is false for a step with numbers that are not finite.
func likeliest(row []float32) (class int, probability float32, ok bool) {
	highest, sum, shares := row[0], 0.0, true
	for i, score := range row {
		if !finite(score) {
			return 0, 0, false
		}
		if score > highest {
			class, highest = i, score
		}
		sum += float64(score)
		shares = shares && score >= 0 && score <= scan.MaxScore
	}
	if shares && math.Abs(sum-1) <= sumTolerance {
		return class, min(highest, 1), true
	}
	total := 0.0
	for _, score := range row {
		total += math.Exp(float64(score - highest))
	}
	return class, float32(1 / total), true
}
