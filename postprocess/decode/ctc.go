package decode

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// read decodes a line of text greedily, as connectionist temporal classification is (Graves et al. 2006): every step has its likeliest
// class, of equal ones in a row the first counts, and blanks part characters. Each character is a detection, in the order of reading, with
// the highest probability of its steps and about the part of the image that they see.
func (d *Decoder) read(dst []postprocess.Detection) ([]postprocess.Detection, error) {
	scores, classes := d.parts[0].data, d.columns
	if classes == 0 {
		return dst, nil
	}
	blank := 0
	if d.layout == head.LayoutCTCBlankLast {
		blank = classes - 1
	}
	steps, before, first := len(scores)/classes, blank, len(dst)
	open := false // the last finding goes on with the same class
	for step := range steps {
		class, score, ok := likeliest(scores[step*classes:][:classes])
		if !ok {
			d.img.stats.Invalid++
			d.img.stats.BadScores++
			class = blank
		}
		switch {
		case class == blank:
			open = false
		case class == before && open:
			last := &dst[len(dst)-1]
			last.X2, last.Score = d.column(step+1, steps), max(last.Score, score)
		default:
			number := d.fit.Numbering.Class(class)
			if open = number >= 0; !open {
				break
			}
			if len(dst) == cap(dst) {
				dst = slices.Grow(dst, 1)
			}
			dst = append(dst, postprocess.Detection{
				Box: postprocess.Box{
					X1: d.column(step, steps), X2: d.column(step+1, steps), Y2: float32(d.img.height),
				},
				Score: score, Class: number,
			})
		}
		before = class
	}
	return d.sure(dst, first), nil
}

// sure leaves out the characters under their thresholds, and those beyond the limit.
func (d *Decoder) sure(dst []postprocess.Detection, first int) []postprocess.Detection {
	kept, stats := first, &d.img.stats
	for i := first; i < len(dst); i++ {
		threshold := d.MinScore
		if class := dst[i].Class; class < len(d.thresholds) {
			threshold = d.thresholds[class]
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

// column is where a step begins in the image. What is beside the image, where it was padded, is its border.
func (d *Decoder) column(step, steps int) float32 {
	at := float32(step) * float32(d.fit.Width) / float32(steps)
	return min(max((at-d.img.transform.PadX)/d.img.transform.ScaleX, 0), float32(d.img.width))
}

// likeliest is the class with the highest score of a step and its probability: the score, where those of the step add up to 1, else that
// of a softmax over all. It reports false for numbers that are none.
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
