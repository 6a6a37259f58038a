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

// CascadeStages returns the configured secondary networks with functions that open them, on the first GPU. Those build a plan that TensorRT
// lacks if TensorRT is the configured backend, and with ahead also if it would be chosen automatically, because secondary networks are not
// upgraded later. Without steps no plan is built.
func CascadeStages(e *config.Engine, cascades []config.Cascade, steps progress.Reporter, ahead bool, logger *slog.Logger) (
	stages []cascade.Stage, err error,
) {
	for i := range cascades {
		c := &cascades[i]
		layout, err := head.ParseLayout(c.Layout)
		if err != nil {
			return nil, fmt.Errorf("cascade %s: %w", c.Name, err)
		}
		stages = append(stages, cascade.Stage{
			Name: c.Name, Classes: c.On, MinSize: float32(c.MinSize), Margin: float32(c.Margin), Interval: c.Every, Votes: c.Votes,
			Confidence: float32(c.Confidence), KeepEmbedding: c.Vector, MaxLostAge: c.Remember,
			Opener: func(ctx context.Context) (predict.Predictor, error) {
				return openSecondary(ctx, e, c, layout, steps, ahead, logger)
			},
		})
	}
	return stages, nil
}

func openSecondary(
	ctx context.Context, e *config.Engine, c *config.Cascade, layout head.Layout, steps progress.Reporter, ahead bool, logger *slog.Logger,
) (predict.Predictor, error) {
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
		return nil, err
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
		return nil, err // not n, a nil *Network that would be no nil Predictor
	}
	return n, nil
}

// openCascade opens the secondary networks. On an error nothing is left open.
func openCascade(ctx context.Context, c *config.Config, steps progress.Reporter, logger *slog.Logger) ([]cascade.Stage, error) {
	stages, err := CascadeStages(&c.Engine, c.Cascade, steps, false, logger)
	if err != nil {
		return nil, err
	}
	for i := range stages {
		if stages[i].Predictor, err = stages[i].Opener(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("cascade %s: %w", stages[i].Name, err), closeCascade(stages[:i]))
		}
	}
	return stages, nil
}

func closeCascade(stages []cascade.Stage) error {
	var errs []error
	for i := range stages {
		errs = append(errs, stages[i].Close())
	}
	return errors.Join(errs...)
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
	stages, err := openCascade(ctx, c, steps, logger)
	if err != nil || len(stages) == 0 {
		return p, err
	}
	chained := &cascade.Chained{Predictor: p, Stages: stages}
	if err := chained.Open(); err != nil {
		return p, config.UsageError{Err: errors.Join(err, closeCascade(stages))}
	}
	return chained, nil
}
