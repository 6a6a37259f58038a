// Package accuracy says how good a network is: validate's measurements, and the gate that compares what was made of a model with the model.
package accuracy

import (
	"cmp"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// margin is how near the threshold a box may be missing on one side: 8-bit scores move by a few steps of 1/127.
const margin = 0.04

// Comparer compares what two networks find in the same samples. One goroutine at a time.
type Comparer struct {
	// Reported is the reported threshold, from which boxes are compared, postprocess.DefaultReported when 0. Average precision counts weaker
	// ones too.
	Reported float32
	// IoU is the overlap above which suppression drops a box, that of the default settings when 0. Boxes are compared as service would show
	// them, each with its best class, however many of them average precision counts.
	IoU float32
	// Truths are the labels of each sample; nil when there are none.
	Truths [][]evaluate.Truth

	seen  [2][][]postprocess.Detection // by sample; nil for samples that were skipped
	times []time.Duration              // of the network alone, in the last Run
}

// Run has a predictor that decodes from the floor on be one side of a gate.
func (c *Comparer) Run(side quantize.Side, p predict.Predictor) quantize.RunSample {
	c.times = nil
	return func(i int, s quantize.Sample) error {
		if err := p.Submit(0, []engine.Image{s.Image}); err != nil {
			return err
		}
		result, err := p.Wait(0)
		if err == nil {
			err = result.Results[0].Err
		}
		if err != nil {
			return err
		}
		c.times = append(c.times, time.Duration(result.Timing.Inference))
		c.Add(side, i, slices.Clone(result.Results[0].Detections))
		return nil
	}
}

// Add remembers what one side found in sample i, decoded from the floor on. The comparer keeps the slice.
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

// Compare is what quantize.Gate asks for.
func (c *Comparer) Compare() quantize.Comparison {
	r := c.Agreement()
	comparison := quantize.Comparison{
		Images: r.Images, Reference: r.Reference, Candidate: r.Candidate, Matched: r.Matched, Flipped: r.Flipped, MatchRate: r.MatchRate,
		MeanDrift: r.MeanDrift, MaxDrift: r.MaxDrift,
	}
	if c.Truths == nil {
		return comparison
	}
	reference, candidate := c.measure(quantize.Reference), c.measure(quantize.Candidate)
	comparison.ReferenceAccuracy, comparison.CandidateAccuracy = summary(reference.Result()), summary(candidate.Result())
	interval := evaluate.LossInterval(reference, candidate, resamples, 1)
	comparison.Loss = &quantize.Loss{
		MAP: comparison.ReferenceAccuracy.MAP - comparison.CandidateAccuracy.MAP, Low: interval.Low, High: interval.High,
	}
	return comparison
}

// resamples of the images say how certain a loss is; more hardly move the ends of its interval.
const resamples = 1000

// Agreement counts how the boxes of both sides fit.
func (c *Comparer) Agreement() evaluate.AgreementReport {
	agreement := evaluate.Agreement{Threshold: c.reportedThreshold(), Margin: margin}
	for _, i := range c.samples() {
		agreement.Add(c.reported(quantize.Reference, i), c.reported(quantize.Candidate, i))
	}
	return agreement.Report()
}

func summary(r evaluate.Result) *quantize.Accuracy {
	return &quantize.Accuracy{MAP50: r.MAP50, MAP: r.MAP}
}

// Accuracy scores one side against the labels.
func (c *Comparer) Accuracy(side quantize.Side) evaluate.Result { return c.measure(side).Result() }

func (c *Comparer) measure(side quantize.Side) *evaluate.Accuracy {
	accuracy := new(evaluate.Accuracy)
	for _, i := range c.samples() {
		accuracy.Add(c.Truths[i], c.seen[side][i])
	}
	return accuracy
}

func (c *Comparer) reportedThreshold() float32 {
	return cmp.Or(c.Reported, postprocess.DefaultConfidence)
}

// reported are the detections of a sample from the threshold on, as service would show them.
func (c *Comparer) reported(side quantize.Side, i int) []postprocess.Detection {
	return shown(above(c.reportedThreshold(), c.seen[side][i]), cmp.Or(c.IoU, float32(config.Default().Detect.IoU)))
}

// shown leaves each box its best class and suppresses by that overlap what comes after a better one of its class. The detections come best
// first.
func shown(all []postprocess.Detection, overlap float32) (kept []postprocess.Detection) {
	for _, f := range all {
		if !slices.ContainsFunc(kept, func(better postprocess.Detection) bool {
			return better.Box == f.Box || better.Class == f.Class && better.IoU(f.Box) > overlap
		}) {
			kept = append(kept, f)
		}
	}
	return kept
}

func above(threshold float32, all []postprocess.Detection) (kept []postprocess.Detection) {
	for _, d := range all {
		if d.Score >= threshold {
			kept = append(kept, d)
		}
	}
	return kept
}
