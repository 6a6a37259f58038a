package bench

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// detections holds the detections of a contender, or its outputs for tensors.
type detections struct {
	images  [][]postprocess.Detection
	outputs [][]float32
}

// compared is the number of images for the comparison of contenders.
const compared = 32

// margin is the distance from the threshold within which a box may be missing on one side, because of rounding.
const margin = 0.04

// find runs the network on the first images, or on the tensors.
func (s *subject) find() (*detections, error) {
	f := &detections{}
	if s.network == nil {
		r, err := s.raw.network.Tensors(s.raw.inputs...)
		if err != nil {
			return nil, err
		}
		for i := range r.Outputs {
			f.outputs = append(f.outputs, slices.Clone(r.Outputs[i].Float32s()))
		}
		return f, nil
	}
	// Full batches, for networks with a fixed batch.
	batch := s.batch
	images := make([]engine.Image, 0, compared+batch)
	for len(images) < min(compared, len(s.images)) || len(images)%batch > 0 {
		images = append(images, s.images[len(images)%len(s.images)])
	}
	results, err := predict.Run(&requests{Predictor: s.network, batch: batch}, images...)
	if err != nil {
		return nil, err
	}
	reported := float32(s.contender.Detect.Confidence)
	for _, p := range results[:min(compared, len(s.images))] {
		if p.Err != nil {
			return nil, p.Err
		}
		f.images = append(f.images, slices.DeleteFunc(p.Detections, func(x postprocess.Detection) bool { return x.Score < reported }))
	}
	return f, nil
}

// compareContenders sets speed-up and agreement of every contender relative to the last one.
func (b *Bench) compareContenders(report *Report, found []*detections) {
	last := len(b.Contenders) - 1
	for i, c := range b.Contenders {
		var agreement *Agreement
		if i != last && found[i] != nil && found[last] != nil {
			agreement = agree(b.Contenders[last], found[last], found[i])
		}
		for j := range report.Results {
			r := &report.Results[j]
			if r.Engine != c.Engine {
				continue
			}
			r.Agreement = agreement
			for k := range report.Results {
				base := &report.Results[k]
				if base.Engine == b.Contenders[last].Engine && base.What == r.What && base.Drive == r.Drive && base.Batch == r.Batch && base.FPS > 0 {
					r.SpeedUp = r.FPS / base.FPS
				}
			}
		}
	}
}

// agree returns the agreement of a candidate with the reference.
func agree(c Contender, reference, candidate *detections) *Agreement {
	a := &Agreement{With: c.Engine}
	if reference.images != nil && candidate.images != nil {
		boxes := evaluate.Agreement{Threshold: float32(c.Detect.Confidence), Margin: margin}
		for i := range reference.images {
			boxes.Add(reference.images[i], candidate.images[i])
		}
		r := boxes.Report()
		a.Images, a.Rate, a.Drift = r.Images, &r.MatchRate, r.MaxDrift
		return a
	}
	if len(reference.outputs) == 0 || len(reference.outputs) != len(candidate.outputs) {
		return nil
	}
	difference, largest := 0.0, 0.0
	for i, x := range reference.outputs {
		y := candidate.outputs[i]
		if len(x) != len(y) {
			return nil
		}
		for j := range x {
			difference, largest = max(difference, math.Abs(float64(x[j])-float64(y[j]))), max(largest, math.Abs(float64(x[j])))
		}
	}
	a.Difference, a.Largest = &difference, &largest
	return a
}
