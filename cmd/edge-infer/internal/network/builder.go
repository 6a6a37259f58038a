package network

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// BuildCommand is the hidden command by which this program builds engine plans in a process of its own; ServePlanBuild is its body.
const BuildCommand = "build-plan"

// ServePlanBuild builds the one plan that the process was started for.
func ServePlanBuild(ctx context.Context, in io.Reader, out io.Writer) error {
	return tensorrt.ServeBuild(ctx, in, out)
}

// PlanBuilder builds engine plans in a process of its own: what runs out of memory there is not this one.
type PlanBuilder struct {
	Progress progress.Reporter
	Task     string // is being done, in the notes of the progress; "building the engine plan" when empty
}

// Build builds a plan into the cache; it implements predict.Options.Build.
func (b PlanBuilder) Build(ctx context.Context, options tensorrt.BuildOptions) error {
	_, err := b.BuildTo(ctx, options, "", tensorrt.Cache{})
	return err
}

// BuildTo builds a plan into a file, or into the cache if no file is given.
func (b PlanBuilder) BuildTo(ctx context.Context, options tensorrt.BuildOptions, file string, cache tensorrt.Cache) (*tensorrt.BuiltPlan,
	error,
) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	// Without lazy loading the libraries' kernels alone take hundreds of megabytes of GPU memory.
	child := tensorrt.BuildProcess{Command: []string{program, BuildCommand}, Environment: []string{"CUDA_MODULE_LOADING=LAZY"}}
	what := cmp.Or(b.Task, "building the engine plan")
	step := b.Progress.Begin(what)
	defer step.Close()
	return child.Build(ctx, options, file, cache, func(p tensorrt.Progress) { step.Note(what + phase(p)) })
}

// phase describes the progress of a build.
func phase(p tensorrt.Progress) (text string) {
	if p.Phase != "" {
		text = ": " + p.Phase
	}
	if p.Steps > 0 {
		text += fmt.Sprintf(", step %d of %d", p.Step, p.Steps)
	}
	return text + fmt.Sprintf(", %v", p.Elapsed.Round(time.Second))
}
