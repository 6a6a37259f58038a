// Package accuracy measures networks: the job of the command validate, and the gate that compares a converted model with its original.
package accuracy

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// margin is the distance from the threshold within which a box may be missing on one side: 8-bit scores differ by a few steps of 1/127.
const margin = 0.04

// Comparer compares the detections of two networks on the same samples. It must be used by one goroutine at a time.
type Comparer struct {
	// Reported is the confidence from which boxes are compared, postprocess.DefaultConfidence if 0. Average precision counts lower scores too.
	Reported float32
	// IoU is the NMS threshold, the default setting if 0. Boxes are compared as the daemon reports them, each with its best class.
	IoU float32
	// Truths holds the labels of each sample; nil without labels.
	Truths [][]evaluate.Truth

	seen  [2][][]postprocess.Detection // by sample; nil for samples that were skipped
	times []time.Duration              // inference times of the last Run
}

// Side is one of the two compared networks.
type Side int

// Reference is the FP32 network, Candidate the converted one.
const (
	Reference Side = iota
	Candidate
)

// Run runs a predictor, which decodes from the minimum score on, over the samples as one side. It calls progress after each sample and
// returns the samples that could not be read.
func (c *Comparer) Run(
	ctx context.Context, side Side, p predict.Predictor, samples quantize.Samples, progress func(done, total int),
) (skipped []string, err error) {
	c.times = nil
	return quantize.Each(samples, func(i int, s quantize.Sample) error {
		if err := ctx.Err(); err != nil {
			return err
		}
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
		progress(len(c.times), samples.Len())
		return nil
	})
}

// Add adds the detections of one side in sample i, from the minimum score on. The comparer keeps the slice.
func (c *Comparer) Add(side Side, i int, detections []postprocess.Detection) {
	for len(c.seen[side]) <= i {
		c.seen[side] = append(c.seen[side], nil)
	}
	if detections == nil {
		detections = []postprocess.Detection{} // nil marks a skipped sample
	}
	c.seen[side][i] = detections
}

// samples returns the samples that both sides have.
func (c *Comparer) samples() (both []int) {
	for i := range min(len(c.seen[Reference]), len(c.seen[Candidate])) {
		if c.seen[Reference][i] != nil && c.seen[Candidate][i] != nil {
			both = append(both, i)
		}
	}
	return both
}

// Compare compares the detections of both sides, and their accuracy if there are labels.
func (c *Comparer) Compare() quantize.Comparison {
	r := c.Agreement()
	comparison := quantize.Comparison{
		Images: r.Images, Reference: r.Reference, Candidate: r.Candidate, Matched: r.Matched, Flipped: r.Flipped, MatchRate: r.MatchRate,
		MeanDrift: r.MeanDrift, MaxDrift: r.MaxDrift,
	}
	if c.Truths == nil {
		return comparison
	}
	reference, candidate := c.measure(Reference), c.measure(Candidate)
	comparison.ReferenceAccuracy, comparison.CandidateAccuracy = summary(reference.Result()), summary(candidate.Result())
	interval := evaluate.LossInterval(reference, candidate, resamples, 1)
	comparison.Loss = &quantize.Loss{
		MAP: comparison.ReferenceAccuracy.MAP - comparison.CandidateAccuracy.MAP, Low: interval.Low, High: interval.High,
	}
	return comparison
}

// resamples is the number of bootstrap samples for the confidence interval of a loss.
const resamples = 1000

// Agreement compares the boxes of both sides.
func (c *Comparer) Agreement() evaluate.AgreementReport {
	agreement := evaluate.Agreement{Threshold: c.reportedThreshold(), Margin: margin}
	for _, i := range c.samples() {
		agreement.Add(c.reported(Reference, i), c.reported(Candidate, i))
	}
	return agreement.Report()
}

func summary(r evaluate.Result) *quantize.Accuracy {
	return &quantize.Accuracy{MAP50: r.MAP50, MAP: r.MAP}
}

// Accuracy scores one side against the labels.
func (c *Comparer) Accuracy(side Side) evaluate.Result { return c.measure(side).Result() }

func (c *Comparer) measure(side Side) *evaluate.Accuracy {
	accuracy := new(evaluate.Accuracy)
	for _, i := range c.samples() {
		accuracy.Add(c.Truths[i], c.seen[side][i])
	}
	return accuracy
}

func (c *Comparer) reportedThreshold() float32 {
	return cmp.Or(c.Reported, postprocess.DefaultConfidence)
}

// reported returns the detections of a sample from the threshold on, as the daemon reports them.
func (c *Comparer) reported(side Side, i int) []postprocess.Detection {
	return shown(above(c.reportedThreshold(), c.seen[side][i]), cmp.Or(c.IoU, float32(config.Default().Detect.IoU)))
}

// shown keeps the best class of each box and applies NMS by class with a threshold. The detections must be sorted by score.
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
