package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// plan is an engine plan that TensorRT runs, and that is built first where there is none.
type plan struct {
	level    *int // the builder's effort, nil for its own
	progress progress.Reporter
	serving  string // the backend that serves meanwhile
	logger   *slog.Logger
}

// open opens TensorRT's predictor.
func (p plan) open(ctx context.Context, options predict.Options) (*predict.Network, error) {
	what := "building the engine plan"
	if p.level != nil {
		what = "building a quick engine plan"
	}
	if options.Backend != tensorrt.Name {
		options.Reason = "is the first choice, and its plan has been built"
	}
	options.Backend, options.Level, options.ReserveCPU = tensorrt.Name, p.level, false
	options.Build = nil // a missing plan is built here
	if err := options.Load(); err != nil {
		return nil, err
	}
	if options.NeedsPlan() {
		p.logger.Info(what, "model", options.Path, "serving", p.serving)
		builder := network.PlanBuilder{Task: what, Progress: p.progress}
		if err := builder.Build(ctx, options.Plan()); err != nil {
			return nil, fmt.Errorf("engine plan not built: %w", err)
		}
	}
	return predict.Open(ctx, options)
}

// quickLevel is the optimization level of the plan that serves until the one of full effort is there: the builder takes the first kernels
// that work, within seconds. It is nil where TensorRT has no levels.
func quickLevel(options *predict.Options) (*int, error) {
	library, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{Path: options.Library})
	if err != nil || !library.Version.HasOptimizationLevels() {
		return nil, err
	}
	return new(int), nil
}

// openFirst opens a network at the start of a run. If TensorRT only lacks a plan and no other backend could serve in the meantime, a plan
// is built first; quick means that it is one of low optimization level.
func openFirst(ctx context.Context, options predict.Options, steps progress.Reporter, logger *slog.Logger) (n *predict.Network, quick bool,
	err error,
) {
	n, err = predict.Open(ctx, options)
	if err == nil || options.Backend != config.Auto || !options.NeedsPlan() {
		return n, false, err
	}
	logger.Warn("nothing but TensorRT can run the model here, so its plan is built before anything is served", "reason", err)
	level, unknown := quickLevel(&options)
	if unknown != nil {
		return nil, false, errors.Join(err, unknown)
	}
	n, failed := plan{level: level, progress: steps, serving: "nothing", logger: logger}.open(ctx, options)
	if failed != nil {
		return nil, false, errors.Join(failed, err)
	}
	return n, level != nil, nil
}
