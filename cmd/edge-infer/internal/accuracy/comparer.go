package accuracy

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

const (
	// lowestScore is where average precision begins to count: the curve needs the weak detections too.
	lowestScore = 0.001
	// margin is how near the threshold a box may be missing on one side: 8-bit scores move by a few steps of 1/127.
	margin = 0.04
)

// Comparer decodes and compares two engines of one model; it implements quantize.Comparer. One goroutine at a time.
type Comparer struct {
	// Confidence is the score from which boxes are compared, postprocess.DefaultConfidence when 0. Average precision counts weaker ones too.
	Confidence float32
	// Layout overrides how the outputs are recognized.
	Layout postprocess.Layout
	// Truths are the labels of each sample; nil when there are none.
	Truths [][]evaluate.Truth

	detectors [2]*pipeline.Detector
	seen      [2][][]postprocess.Detection // by sample; nil for samples that were skipped
}

var _ quantize.Comparer = (*Comparer)(nil)

// Open fits the decoders to the model, whose outputs are the same on both sides. It is called once, before the gate runs.
func (c *Comparer) Open(model engine.Model) (err error) {
	if c.Confidence == 0 {
		c.Confidence = postprocess.DefaultConfidence
	}
	for side := range c.detectors {
		if c.detectors[side], err = pipeline.OpenDetector(model, &postprocess.Decoder{Layout: c.Layout, Confidence: lowestScore}); err != nil {
			return err
		}
	}
	return nil
}

// Detect implements quantize.Comparer.
func (c *Comparer) Detect(side quantize.Side, i int, s quantize.Sample, result *engine.Result) error {
	detections, err := c.detectors[side].Decode(result, 0, s.Image.Width, s.Image.Height, []postprocess.Detection{})
	if err != nil {
		return err
	}
	c.Add(side, i, slices.Clip(detections))
	return nil
}

// Add remembers what one side found in sample i, decoded elsewhere from a score near 0 on; Open is not needed then. The comparer keeps the slice.
func (c *Comparer) Add(side quantize.Side, i int, detections []postprocess.Detection) {
	for len(c.seen[side]) <= i {
		c.seen[side] = append(c.seen[side], nil)
	}
	if detections == nil {
		detections = []postprocess.Detection{} // nil stands for a sample that was skipped
	}
	c.seen[side][i] = detections
}

// samples are those that both sides have.
func (c *Comparer) samples() (both []int) {
	for i := range min(len(c.seen[quantize.Reference]), len(c.seen[quantize.Candidate])) {
		if c.seen[quantize.Reference][i] != nil && c.seen[quantize.Candidate][i] != nil {
			both = append(both, i)
		}
	}
	return both
}

// Compare implements quantize.Comparer.
func (c *Comparer) Compare() quantize.Comparison {
	r := c.Agreement()
	comparison := quantize.Comparison{
		Pictures: r.Pictures, Reference: r.Reference, Candidate: r.Candidate, Matched: r.Matched, Flipped: r.Flipped, MatchRate: r.MatchRate,
		MeanDrift: r.MeanDrift, MaxDrift: r.MaxDrift,
	}
	if c.Truths != nil {
		comparison.ReferenceAccuracy, comparison.CandidateAccuracy = summary(c.Accuracy(quantize.Reference)), summary(c.Accuracy(quantize.Candidate))
	}
	return comparison
}

// Agreement counts how the boxes of both sides fit.
func (c *Comparer) Agreement() evaluate.AgreementReport {
	agreement := evaluate.Agreement{Threshold: c.Confidence, Margin: margin}
	for _, i := range c.samples() {
		agreement.Add(c.reported(quantize.Reference, i), c.reported(quantize.Candidate, i))
	}
	return agreement.Report()
}

func summary(r evaluate.Result) *quantize.Accuracy {
	return &quantize.Accuracy{MAP50: r.MAP50, MAP: r.MAP}
}

// Accuracy scores one side against the labels.
func (c *Comparer) Accuracy(side quantize.Side) evaluate.Result {
	var accuracy evaluate.Accuracy
	for _, i := range c.samples() {
		accuracy.Add(c.Truths[i], c.seen[side][i])
	}
	return accuracy.Result()
}

// reported are the detections of a sample from the threshold on.
func (c *Comparer) reported(side quantize.Side, i int) []postprocess.Detection {
	return above(c.Confidence, c.seen[side][i])
}

func above(threshold float32, all []postprocess.Detection) (kept []postprocess.Detection) {
	for _, d := range all {
		if d.Score >= threshold {
			kept = append(kept, d)
		}
	}
	return kept
}

// Curves are the precision-recall curves of both sides, averaged over the classes; nil without labels.
func (c *Comparer) Curves() []quantize.Curve {
	if c.Truths == nil {
		return nil
	}
	var curves []quantize.Curve
	for side, name := range []string{"reference", "candidate"} {
		curves = append(curves, mean(name, c.Accuracy(quantize.Side(side))))
	}
	return curves
}

// mean averages the classes' curves at 101 recalls, with the best precision at that recall or a higher one as average precision takes it.
func mean(name string, r evaluate.Result) quantize.Curve {
	curve := quantize.Curve{Name: name}
	for step := range 101 {
		recall, sum := float64(step)/100, 0.0
		for i := range r.Classes {
			best := 0.0
			for _, point := range r.Classes[i].Curve {
				if point.Recall >= recall {
					best = max(best, point.Precision)
				}
			}
			sum += best
		}
		curve.Recall = append(curve.Recall, recall)
		curve.Precision = append(curve.Precision, sum/float64(max(len(r.Classes), 1)))
	}
	return curve
}

// Scores are the scores of the boxes that both sides see, from half of the threshold on.
func (c *Comparer) Scores() (pairs []quantize.ScorePair) {
	for _, i := range c.samples() {
		candidates := above(c.Confidence/2, c.seen[quantize.Candidate][i])
		for _, r := range above(c.Confidence/2, c.seen[quantize.Reference][i]) {
			best, overlap := -1, float32(0.5)
			for j := range candidates {
				if iou := r.IoU(candidates[j].Box); candidates[j].Class == r.Class && iou >= overlap {
					best, overlap = j, iou
				}
			}
			if best >= 0 {
				pairs = append(pairs, quantize.ScorePair{Reference: r.Score, Candidate: candidates[best].Score})
				candidates = slices.Delete(candidates, best, best+1)
			}
		}
	}
	return pairs
}
