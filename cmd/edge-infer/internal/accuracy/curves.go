package accuracy

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

// Curves holds precision, recall and F1 at every threshold at IoU 0.5: first the mean over the classes, then each class.
type Curves struct {
	// PrecisionRecall is the interpolated precision at 101 recalls from 0 to 1, as used for average precision.
	PrecisionRecall []Curve `json:"precision_recall"`
	// F1 is the harmonic mean of precision and recall at 101 thresholds from 0 to 1.
	F1 []Curve `json:"f1"`
}

// Curve holds the values of a class over 101 steps from 0 to 1.
type Curve struct {
	Label  string    `json:"label"` // empty for the mean
	Values []float64 `json:"values"`
}

// OperatingPoint is the confidence with the best mean F1, the choice if misses and false alarms have the same weight.
type OperatingPoint struct {
	Confidence float64 `json:"confidence"`
	F1         float64 `json:"f1"`
}

const steps = 101

// newCurves returns the curves of the classes with objects.
func newCurves(r *evaluate.Result, labels []string) (*Curves, *OperatingPoint) {
	c := &Curves{PrecisionRecall: []Curve{{Values: make([]float64, steps)}}, F1: []Curve{{Values: make([]float64, steps)}}}
	if len(r.Classes) == 0 {
		return nil, nil
	}
	add := func(to *[]Curve, label string, values []float64) {
		for i := range values {
			(*to)[0].Values[i] += values[i] / float64(len(r.Classes))
			values[i] = rounded(values[i])
		}
		*to = append(*to, Curve{label, values})
	}
	for i := range r.Classes {
		class := &r.Classes[i]
		label := postprocess.Label(labels, class.Class)
		add(&c.PrecisionRecall, label, bestPrecisions(class.Curve))
		add(&c.F1, label, f1(class.Curve))
	}
	best := &OperatingPoint{}
	for i, value := range c.F1[0].Values {
		if value > best.F1 {
			best.Confidence, best.F1 = float64(i)/(steps-1), value
		}
	}
	for _, curve := range [][]Curve{c.PrecisionRecall, c.F1} {
		for i, value := range curve[0].Values {
			curve[0].Values[i] = rounded(value)
		}
	}
	return c, best
}

// rounded rounds to four digits.
func rounded(v float64) float64 { return math.Round(v*1e4) / 1e4 }

// bestPrecisions returns the interpolated precision at 101 recalls.
func bestPrecisions(c evaluate.Curve) []float64 {
	values := make([]float64, steps)
	best, at := 0.0, len(c)-1
	for step := steps - 1; step >= 0; step-- {
		for ; at >= 0 && c[at].Recall >= float64(step)/(steps-1); at-- {
			best = max(best, c[at].Precision)
		}
		values[step] = best
	}
	return values
}

// f1 returns F1 at 101 thresholds.
func f1(c evaluate.Curve) []float64 {
	values := make([]float64, steps)
	for step := range values {
		values[step] = c.At(float32(step) / (steps - 1)).F1()
	}
	return values
}

// Confusion is the confusion matrix of the detections from the confidence on. The last row and column are the background: false positives
// and missed objects.
type Confusion struct {
	Confidence float32  `json:"confidence"`
	IoU        float32  `json:"iou"`
	Labels     []string `json:"labels"` // classes that occur, without the background
	Counts     [][]int  `json:"counts"` // by label of the truth and of the detection
}

// newConfusion counts the detections that the daemon would report.
func newConfusion(dataset *evaluate.Dataset, seen [][]postprocess.Detection, labels []string, confidence, suppression float32) *Confusion {
	counted := evaluate.Confusion{IoU: 0.5}
	for i := range dataset.Images {
		counted.Add(dataset.Images[i].Truths, shown(above(confidence, seen[i]), suppression))
	}
	c := &Confusion{Confidence: confidence, IoU: counted.IoU, Labels: []string{}}
	classes, counts := counted.Matrix()
	for _, class := range classes {
		c.Labels = append(c.Labels, postprocess.Label(labels, class))
	}
	c.Counts = counts
	return c
}
