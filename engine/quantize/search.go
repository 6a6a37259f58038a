package quantize

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// Search finds the smallest set of layers that must stay in floating point for the gate to pass.
type Search struct {
	// Model is the prepared FP32 model, Ranges its measured ranges, Options the plan to start from.
	Model   *onnx.Model
	Ranges  Ranges
	Options Options
	// Open opens a model from its bytes.
	Open func(model []byte) (Runner, error)
	// Samples are a few samples, 4 to 16, for measuring each layer's error.
	Samples Samples
	// Judge runs the gate on a quantized model, like Gate.Judge.
	Judge func(ctx context.Context, model *onnx.Model) (*Verdict, error)
	// Progress, if not nil, is called at each step.
	Progress func(step string)
}

// LayerError is the error of the head's outputs if only this layer is quantized.
type LayerError struct {
	Name     string `json:"name"`
	Operator string `json:"operator"`
	// Error is the squared difference over the squared reference, summed over the head's outputs; an output with NaN or infinite values
	// counts as 1.
	Error float64 `json:"error"`
	// Excluded is set if the layer stays in floating point.
	Excluded bool `json:"excluded"`
}

// SearchResult is the result of a search.
type SearchResult struct {
	Model   *onnx.Model `json:"-"`
	Plan    *Plan       `json:"-"`
	Verdict *Verdict    `json:"verdict"`
	// Layers are all quantizable layers, worst first; empty if the gate passed at once.
	Layers []LayerError `json:"layers,omitempty"`
	// Judged is the number of models that the gate judged.
	Judged int `json:"judged"`
}

// Run judges the whole plan and, if the gate refuses it, excludes the smallest number of the worst layers for which it passes. If there is
// none, the last verdict is returned with Passed false.
func (s *Search) Run(ctx context.Context) (*SearchResult, error) {
	found, err := s.try(ctx, nil)
	if err != nil || found.Verdict.Passed {
		return found, err
	}
	judged := found.Judged
	layers, err := s.Sensitivity(ctx)
	if err != nil {
		return nil, err
	}
	count, passed, err := FewestExclusions(len(layers), func(count int) (bool, error) {
		next, err := s.try(ctx, layers[:count])
		if err != nil {
			return false, err
		}
		judged++
		if next.Verdict.Passed || !found.Verdict.Passed {
			found = next
		}
		return next.Verdict.Passed, nil
	})
	if err != nil {
		return nil, err
	}
	if passed {
		for i := range layers[:count] {
			layers[i].Excluded = true
		}
	}
	found.Layers, found.Judged = layers, judged
	return found, nil
}

// FewestExclusions returns the smallest number of layers of a ranking, worst first, whose exclusion makes passes return true. It doubles
// the number until passes returns true, up to all but one, and then bisects. The last call that returned true had the returned count.
func FewestExclusions(layers int, passes func(count int) (bool, error)) (count int, passed bool, err error) {
	failing, passing := 0, 0
	for try := min(1, layers-1); try > failing; try = min(2*try, layers-1) {
		passed, err = passes(try)
		if err != nil {
			return 0, false, err
		}
		if passed {
			passing = try
			break
		}
		failing = try
	}
	for passed && passing-failing > 1 {
		middle := (failing + passing) / 2
		fits, err := passes(middle)
		if err != nil {
			return 0, false, err
		}
		if fits {
			passing = middle
		} else {
			failing = middle
		}
	}
	return passing, passed, nil
}

// try quantizes the model without the given layers and judges it.
func (s *Search) try(ctx context.Context, without []LayerError) (*SearchResult, error) {
	options := s.Options
	options.Exclude = slices.Clone(options.Exclude)
	for i := range without {
		options.Exclude = append(options.Exclude, without[i].Name)
	}
	plan, err := NewPlan(s.Model, options)
	if err != nil {
		return nil, err
	}
	m, err := plan.Apply(s.Ranges)
	if err != nil {
		return nil, err
	}
	s.report("judge with %d of %d layers in INT8", plan.Count(), len(plan.Layers))
	verdict, err := s.Judge(ctx, m)
	if err != nil {
		return nil, err
	}
	return &SearchResult{Model: m, Plan: plan, Verdict: verdict, Judged: 1}, nil
}

func (s *Search) report(format string, arguments ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, arguments...))
	}
}

// Sensitivity measures the error of every layer of the plan alone, worst first.
func (s *Search) Sensitivity(ctx context.Context) ([]LayerError, error) {
	plan, err := NewPlan(s.Model, s.Options)
	if err != nil {
		return nil, err
	}
	heads := plan.headOutputs()
	reference, err := s.outputs(ctx, s.Model, heads)
	if err != nil {
		return nil, err
	}
	var layers []LayerError
	for _, l := range plan.Layers {
		if !l.Quantized() {
			continue
		}
		options := s.Options
		options.Only, options.FloatResiduals = []string{l.Name}, true
		alone, err := NewPlan(s.Model, options)
		if err != nil {
			return nil, err
		}
		m, err := alone.Apply(s.Ranges)
		if err != nil {
			return nil, err
		}
		s.report("measure layer %s", l.Name)
		outputs, err := s.outputs(ctx, m, heads)
		if err != nil {
			return nil, err
		}
		layers = append(layers, LayerError{Name: l.Name, Operator: l.Operator, Error: difference(reference, outputs)})
	}
	sort.SliceStable(layers, func(i, j int) bool { return layers[i].Error > layers[j].Error })
	return layers, nil
}

// DefaultLayerLoss is the limit for SensitiveLayers with which a trained YOLOv8n keeps its boxes. It excludes four of its 57 layers, three
// of them at the beginning with a few very large values, which caused two thirds of the total distortion.
const DefaultLayerLoss = 0.0002

// SensitiveLayers measures every layer of the plan alone, worst first, and marks those as excluded whose average error of a head output
// exceeds limit. No calibration method recovers these few layers.
func (s *Search) SensitiveLayers(ctx context.Context, limit float64) (layers []LayerError, err error) {
	plan, err := NewPlan(s.Model, s.Options)
	if err != nil {
		return nil, err
	}
	layers, err = s.Sensitivity(ctx)
	for i := range layers {
		layers[i].Excluded = layers[i].Error > limit*float64(len(plan.headOutputs()))
	}
	return layers, err
}

// headOutputs returns the tensors in which errors are measured: the outputs of the last heavy layers, before the decoding mixes values of
// very different magnitudes.
func (p *Plan) headOutputs() []string {
	var names []string
	for _, n := range p.graph.Node {
		if p.heads[n] {
			names = append(names, n.Out(0))
		}
	}
	return names
}

// outputs returns the values of tensors for all samples, concatenated.
func (s *Search) outputs(ctx context.Context, m *onnx.Model, tensors []string) (map[string][]float32, error) {
	exposed, _ := Expose(m, tensors)
	data, err := exposed.Bytes()
	if err != nil {
		return nil, err
	}
	runner, err := s.Open(data)
	if err != nil {
		return nil, err
	}
	defer runner.Close()
	values := make(map[string][]float32, len(tensors))
	_, err = Each(s.Samples, func(_ int, sample Sample) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("sensitivity: %w", err)
		}
		result, err := run(runner, sample)
		if err != nil {
			return err
		}
		for i := range result.Outputs {
			if out := &result.Outputs[i]; slices.Contains(tensors, out.Name) {
				values[out.Name] = append(values[out.Name], out.Float32s()...)
			}
		}
		return nil
	})
	return values, err
}

// difference returns the squared difference over the squared reference, summed over the tensors.
func difference(reference, outputs map[string][]float32) float64 {
	sum := 0.0
	for name, want := range reference {
		got := outputs[name]
		if len(got) != len(want) {
			sum++
			continue
		}
		lost, size := 0.0, 0.0
		for i := range want {
			d := float64(got[i]) - float64(want[i])
			lost += d * d
			size += float64(want[i]) * float64(want[i])
		}
		switch {
		case lost != lost || math.IsInf(lost, 0):
			sum++
		case size > 0:
			sum += lost / size
		}
	}
	return sum
}
