package infer

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/window"
)

// maxMemory is the largest value of --memory, in MiB.
const maxMemory = 1 << 40

// Window runs a model on an array larger than its input, with a sliding window.
type Window struct {
	Sides    string // like 64x64x64; empty: no window
	Overlap  float64
	Margin   int64
	Blend    string
	Memory   int64             // limit in MiB; 0 for none
	Counting progress.Reporter // counts windows
}

func (w *Window) flags(flags *pflag.FlagSet) {
	flags.StringVar(&w.Sides, "window", "", "slide a window of this size over --input, like 64x64x64 for volumes or 512x512 for images; "+
		"windows overlap by --overlap")
	flags.StringVar(&w.Blend, "blend", string(window.Gaussian), "weights where windows overlap: gaussian or linear")
	flags.Int64Var(&w.Margin, "margin", -1,
		"elements at the borders of a window that are ignored because of padding; -1: a quarter of the overlap")
	flags.Int64Var(&w.Memory, "memory", 0, "limit in MiB for the array, the outputs and a batch of windows; 0: none")
}

// sliding returns the sliding window without its model.
func (w *Window) sliding() (*window.Sliding, error) {
	s := &window.Sliding{Overlap: w.Overlap, Margin: w.Margin, Blend: window.Blend(w.Blend), MaxMemory: w.Memory << 20}
	for part := range strings.SplitSeq(w.Sides, "x") {
		side, err := strconv.ParseInt(part, 10, 32)
		if err != nil {
			return nil, config.Usagef("--window %q must be sides like 64x64x64 or 512x512", w.Sides)
		}
		s.Window = append(s.Window, side)
	}
	if err := s.Validate(); err != nil {
		return nil, config.Usagef("--window: %v", err)
	}
	return s, nil
}

// check validates the flags.
func (w *Window) check() error {
	switch {
	case w.Margin < -1:
		return config.Usagef("--margin %d must be a number of elements from 0, or -1", w.Margin)
	case w.Memory < 0 || w.Memory > maxMemory:
		return config.Usagef("--memory %d must be 0 to %d MiB", w.Memory, maxMemory)
	}
	if w.Sides == "" {
		return nil
	}
	_, err := w.sliding()
	return err
}

// slide runs the model with the sliding window.
func (r *Tensors) slide(
	ctx context.Context, options predict.Options, tensors []engine.Tensor, each func(*engine.Model, *engine.Result) error,
) error {
	s, err := r.Window.sliding()
	if err != nil {
		return err
	}
	if len(tensors) != 1 || len(tensors[0].Shape) != len(s.Window)+2 {
		return config.Usagef("--window %s needs one --input with the dimensions batch, channels and %d sides", r.Window.Sides, len(s.Window))
	}
	input := tensors[0]
	s.Batch = max(r.Config.Engine.Batch, 1)
	one := engine.Tensor{Name: input.Name, Type: input.Type, Shape: s.BatchShape(input.Shape)}
	one.Data = make([]byte, engine.Elements(one.Shape)*int64(one.Type.Size()))
	windows := []engine.Tensor{one}
	if err := fit(&options.Options, windows); err != nil {
		return err
	}
	raw, err := predict.OpenRaw(ctx, options)
	if err != nil {
		return err
	}
	defer raw.Close()
	model := raw.Model()
	name(tensors, model.Inputs)
	step := r.Window.Counting.Begin("windows")
	defer step.Close()
	s.Model, s.Progress = raw, func(done, total int) { step.Count(done, total) }
	started := time.Now()
	outputs, err := s.Run(tensors[0])
	if err != nil {
		return explain(err, model.Inputs)
	}
	return each(&model, &engine.Result{Outputs: outputs, Timing: engine.Timing{Inference: int64(time.Since(started))}})
}
