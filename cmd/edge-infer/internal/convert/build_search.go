package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// attempt is a plan with the gate's verdict on it.
type attempt struct {
	plan    *tensorrt.BuiltPlan
	verdict *quantize.Verdict // nil without a gate
	network float64           // median inference time on the gate's images, in milliseconds
	options tensorrt.BuildOptions
}

// refused reports whether the plan failed the gate.
func (a *attempt) refused() bool { return a.verdict != nil && !a.verdict.Passed }

// attempt builds a plan in a new directory below stage and runs the gate, if there is one.
func (b *Build) attempt(ctx context.Context, o tensorrt.BuildOptions, stage string, gate *accuracy.Gate) (*attempt, error) {
	dir, err := os.MkdirTemp(stage, "attempt-*")
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	staged := ""
	if b.Output != "" {
		staged = filepath.Join(dir, "plan")
	}
	if err := separate(b.source.model, &o); err != nil {
		return nil, err
	}
	plan, err := network.PlanBuilder{Progress: b.Progress}.BuildTo(ctx, o, staged, tensorrt.Cache{Dir: dir})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("build: cancelled: %w", context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	a := &attempt{plan: plan, options: o}
	if gate != nil {
		a.verdict, err = b.judge(ctx, gate, plan.Path)
		if err != nil {
			return nil, err
		}
		a.network = gate.NetworkTime()
	}
	return a, nil
}

// SearchStep is one plan of a search.
type SearchStep struct {
	// Excluded are the layers in floating point in addition to those of every plan, the most sensitive first.
	Excluded []string          `json:"left_out"`
	QDQ      bool              `json:"qdq,omitempty"` // quantized with Q/DQ nodes instead of calibrated ranges
	Verdict  *quantize.Verdict `json:"verdict"`
	Network  float64           `json:"network_p50_ms"`
}

// String returns the step's result in one line.
func (s *SearchStep) String() string {
	if s.QDQ {
		return fmt.Sprintf("INT8 with Q/DQ nodes, network p50 %.3f ms: gate %s", s.Network, accuracy.Text(s.Verdict))
	}
	return fmt.Sprintf("INT8 with %d more layers excluded, network p50 %.3f ms: gate %s", len(s.Excluded), s.Network, accuracy.Text(s.Verdict))
}

// search excludes the most sensitive layers from INT8, as few as the gate needs to pass. If that does not help, it inserts Q/DQ nodes
// instead, because TensorRT may run a layer in INT8 even if the calibration cache excludes it. It returns the last plan that passed, or the
// last one built.
func (b *Build) search(ctx context.Context, refused *attempt, stage string, gate *accuracy.Gate, report *BuildReport) (*attempt, error) {
	if b.calibrated == nil {
		return nil, errors.New("--search measures layers on images (give --images DIR)")
	}
	ranking := slices.DeleteFunc(slices.Clone(b.calibrated.sensitivity), func(l quantize.LayerError) bool { return l.Excluded })
	found := refused
	step := func(a *attempt, nodes bool, leftOut ...string) {
		report.Search = append(report.Search, SearchStep{append([]string{}, leftOut...), nodes, a.verdict, a.network})
		b.Logger.Info("search", "found", report.Search[len(report.Search)-1].String())
	}
	step(refused, false)
	_, _, err := quantize.FewestExclusions(len(ranking), func(count int) (bool, error) {
		var leftOut []string
		for _, layer := range ranking[:count] {
			leftOut = append(leftOut, layer.Name)
		}
		options := b.calibrated.options
		options.Sensitive = append(slices.Clone(options.Sensitive), leftOut...)
		plan, err := quantize.NewPlan(b.source.model, options)
		if err != nil {
			return false, err
		}
		o := refused.options
		o.Calibration.Unquantized = plan.Unquantized()
		next, err := b.attempt(ctx, o, stage, gate)
		if err != nil {
			return false, err
		}
		step(next, false, leftOut...)
		if !next.refused() || found.refused() {
			found = next
		}
		return !next.refused(), nil
	})
	if err != nil || !found.refused() {
		return found, err
	}
	o := b.buildOptions
	o.Precision = engine.INT8
	made, err := b.calibrated.plan.Apply(b.calibrated.ranges)
	if err != nil {
		return nil, err
	}
	o.Model, err = made.Bytes()
	if err != nil {
		return nil, err
	}
	found, err = b.attempt(ctx, o, stage, gate)
	if err == nil {
		step(found, true)
	}
	return found, err
}
