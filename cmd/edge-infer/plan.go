package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// buildPlanCommand is the hidden command by which this program builds engine plans in a process of its own.
const buildPlanCommand = "build-plan"

func newBuildPlan(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: buildPlanCommand, Hidden: true, Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return tensorrt.ServeBuild(command.Context(), command.InOrStdin(), stdout)
		},
	}
}

// child builds plans in a process of its own: what runs out of memory there is not the daemon.
func child() (tensorrt.Child, error) {
	program, err := os.Executable()
	if err != nil {
		return tensorrt.Child{}, fmt.Errorf("build: %w", err)
	}
	// Without lazy loading the libraries' kernels alone take hundreds of megabytes of GPU memory.
	return tensorrt.Child{Command: []string{program, buildPlanCommand}, Environment: []string{"CUDA_MODULE_LOADING=LAZY"}}, nil
}

// lacksPlan reports whether TensorRT would run the model if only its plan had been built.
func lacksPlan(options engine.Options, logger *slog.Logger) bool {
	e, err := tensorrt.Options{Options: options, Log: logger}.Open()
	if err == nil {
		_ = e.Close()
	}
	return errors.Is(err, tensorrt.ErrNoPlan)
}

// buildPlan builds the plan of a model into output, or into cache when that is empty, and shows how far it is on out.
func buildPlan(ctx context.Context, options tensorrt.BuildOptions, output string, cache tensorrt.Cache, out io.Writer) (*tensorrt.BuiltPlan, error) {
	builder, err := child()
	if err != nil {
		return nil, err
	}
	bar := report.NewProgress(out, "steps")
	defer bar.Close()
	return builder.Build(ctx, options, output, cache, func(p tensorrt.Progress) {
		bar.Note(phase("building the engine plan", p))
	})
}

// phase says in words how far a build is.
func phase(what string, p tensorrt.Progress) string {
	text := what
	if p.Phase != "" {
		text += ": " + p.Phase
	}
	if p.Steps > 0 {
		text += fmt.Sprintf(", step %d of %d", p.Step, p.Steps)
	}
	return text + fmt.Sprintf(", %v", p.Elapsed.Round(time.Second))
}

// cachedPlan is what the daemon and the other commands build for options.
func cachedPlan(options engine.Options, logger *slog.Logger) tensorrt.BuildOptions {
	o := tensorrt.Options{Options: options}
	b := o.BuildOptions()
	b.Log = logger
	return b
}
