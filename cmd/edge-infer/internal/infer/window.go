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

// mostMemory is the highest bound on memory, in MiB: more than any machine has.
const mostMemory = 1 << 40

// Window is how a model sees an array that is larger than what it takes.
type Window struct {
	Sides    string // 64x64x64; empty for none
	Overlap  float64
	Margin   int64
	Blend    string
	Memory   int64             // MiB; 0 for no bound
	Counting progress.Reporter // of the windows
}

func (w *Window) flags(flags *pflag.FlagSet) {
	flags.StringVar(&w.Sides, "window", "", "slide a window of so many elements over --input, 64x64x64 for volumes, 512x512 for images; "+
		"neighbours share --overlap of it")
	flags.StringVar(&w.Blend, "blend", string(window.Gaussian), "how a window's elements count where windows overlap: gaussian or linear")
	flags.Int64Var(&w.Margin, "margin", -1,
		"elements at a seam that do not count, those that the network's padding reaches; -1: a quarter of what neighbours share")
	flags.Int64Var(&w.Memory, "memory", 0, "most MiB that the array, the outputs and a batch of windows may take; 0: no bound")
}

// sliding is the window over a model that is set later.
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

// check finds what is wrong with the flags before any work.
func (w *Window) check() error {
	switch {
	case w.Margin < -1:
		return config.Usagef("--margin %d must be elements at a seam, 0 or more, or -1", w.Margin)
	case w.Memory < 0 || w.Memory > mostMemory:
		return config.Usagef("--memory %d must be 0 to %d MiB", w.Memory, mostMemory)
	}
	if w.Sides == "" {
		return nil
	}
	_, err := w.sliding()
	return err
}

// slide runs the model through the window.
func (r *Tensors) slide(
	ctx context.Context, options predict.Options, tensors []engine.Tensor, each func(*engine.Model, *engine.Result) error,
) error {
	s, err := r.Window.sliding()
	if err != nil {
		return err
	}
	if len(tensors) != 1 || len(tensors[0].Shape) != len(s.Window)+2 {
		return config.Usagef("--window %s slides over one --input of a batch, channels and %d sides", r.Window.Sides, len(s.Window))
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
