package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// OpenCascade opens the secondary networks, on the first GPU. It builds a plan that TensorRT lacks if TensorRT is the configured backend,
// and with ahead also if it would be chosen automatically, because secondary networks are not upgraded later. Without steps no plan is
// built. On an error nothing is left open.
func OpenCascade(
	ctx context.Context, e *config.Engine, cascades []config.Cascade, steps progress.Reporter, ahead bool, logger *slog.Logger,
) ([]cascade.Stage, error) {
	var stages []cascade.Stage
	for i := range cascades {
		stage, err := openStage(ctx, e, &cascades[i], steps, ahead, logger)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cascade %s: %w", cascades[i].Name, err), CloseCascade(stages))
		}
		stages = append(stages, stage)
	}
	return stages, nil
}

// CloseCascade closes secondary networks that have no other owner.
func CloseCascade(stages []cascade.Stage) error {
	var errs []error
	for i := range stages {
		errs = append(errs, stages[i].Close())
	}
	return errors.Join(errs...)
}

func openStage(
	ctx context.Context, e *config.Engine, c *config.Cascade, steps progress.Reporter, ahead bool, logger *slog.Logger,
) (stage cascade.Stage, err error) {
	layout, err := head.ParseLayout(c.Layout)
	if err != nil {
		return stage, err
	}
	options := predict.Options{
		Model: c.Model, LabelsFile: c.Labels, ResolveModel: catalogue.Resolve, Backend: e.Backend, Log: logger,
		Decoding: predict.Decoding{Layout: layout},
		Options: engine.Options{
			Precision: engine.Precision(e.Precision), Device: e.FirstGPU(), Threads: e.Threads, Slots: 1,
			MaxBatch: cmp.Or(c.Batch, config.DefaultCascadeBatch), Library: e.Library,
			Plugins: e.Plugins,
		},
	}
	builder := PlanBuilder{Task: "building the engine plan of cascade " + c.Name, Progress: steps}
	if steps != nil {
		options.Build = builder.Build
	}
	if err := options.Load(); err != nil {
		return stage, err
	}
	if ahead && options.Backend == config.Auto && options.NeedsPlan() {
		planned := options
		planned.Backend = tensorrt.Name
		if err := builder.Build(ctx, planned.Plan()); err != nil {
			logger.Warn("engine plan not built, using another backend", "cascade", c.Name, "error", err)
		}
	}
	n, err := predict.Open(ctx, options)
	if err != nil {
		return stage, err
	}
	return cascade.Stage{
		Name: c.Name, Predictor: n, Classes: c.On, MinSize: float32(c.MinSize), Margin: float32(c.Margin), Interval: c.Every,
		Votes: c.Votes, Confidence: float32(c.Confidence), KeepEmbedding: c.Vector, MaxLostAge: c.Remember,
	}, nil
}

// WithCascade runs the configured secondary networks on the detections of p, if there are any. On an error p alone is left open.
func WithCascade(
	ctx context.Context,
	p predict.Predictor,
	c *config.Config,
	steps progress.Reporter,
	logger *slog.Logger,
) (predict.Predictor,
	error,
) {
	stages, err := OpenCascade(ctx, &c.Engine, c.Cascade, steps, false, logger)
	if err != nil || len(stages) == 0 {
		return p, err
	}
	chained := &cascade.Chained{Predictor: p, Stages: stages}
	if err := chained.Open(); err != nil {
		return p, config.UsageError{Err: errors.Join(err, CloseCascade(stages))}
	}
	return chained, nil
}
