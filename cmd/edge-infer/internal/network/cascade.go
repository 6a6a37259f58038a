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

// OpenCascade opens the second networks of a configuration, on the first device. A plan that TensorRT lacks is built where it is the backend by
// name, and with ahead also where it would be chosen automatically: a cascade is not upgraded later. Without steps none is built. An error
// leaves nothing open.
func OpenCascade(ctx context.Context, c *config.Config, steps progress.Reporter, ahead bool, logger *slog.Logger) ([]cascade.Stage, error) {
	var stages []cascade.Stage
	for i := range c.Cascade {
		stage, err := openStage(ctx, c, &c.Cascade[i], steps, ahead, logger)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cascade %s: %w", c.Cascade[i].Name, err), CloseCascade(stages))
		}
		stages = append(stages, stage)
	}
	return stages, nil
}

// CloseCascade closes second networks that nothing has taken over.
func CloseCascade(stages []cascade.Stage) error {
	var errs []error
	for i := range stages {
		errs = append(errs, stages[i].Close())
	}
	return errors.Join(errs...)
}

func openStage(ctx context.Context, c *config.Config, asked *config.Cascade, steps progress.Reporter, ahead bool, logger *slog.Logger) (
	stage cascade.Stage, err error,
) {
	layout, err := head.ParseLayout(asked.Layout)
	if err != nil {
		return stage, err
	}
	options := predict.Options{
		Model: asked.Model, LabelsFile: asked.Labels, ResolveModel: catalogue.Resolve, Backend: c.Engine.Backend, Log: logger,
		Decoding: predict.Decoding{Layout: layout},
		Options: engine.Options{
			Precision: engine.Precision(c.Engine.Precision), Device: c.Engine.FirstGPU(), Threads: c.Engine.Threads, Slots: 1,
			MaxBatch: cmp.Or(asked.Batch, config.DefaultCascadeBatch), Library: c.Engine.Library,
			Plugins: c.Engine.Plugins,
		},
	}
	builder := PlanBuilder{Task: "building the engine plan of cascade " + asked.Name, Progress: steps}
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
			logger.Warn("engine plan not built, another backend looks", "cascade", asked.Name, "error", err)
		}
	}
	n, err := predict.Open(ctx, options)
	if err != nil {
		return stage, err
	}
	return cascade.Stage{
		Name: asked.Name, Predictor: n, Classes: asked.On, MinSize: float32(asked.MinSize), Margin: float32(asked.Margin), Interval: asked.Every,
		Votes: asked.Votes, Confidence: float32(asked.Confidence), KeepEmbedding: asked.Vector, MaxLostAge: asked.Remember,
	}, nil
}

// WithCascade has second networks look at what p finds, where there are any. An error leaves p open and nothing else.
func WithCascade(ctx context.Context, p predict.Predictor, c *config.Config, steps progress.Reporter, logger *slog.Logger) (predict.Predictor,
	error,
) {
	stages, err := OpenCascade(ctx, c, steps, false, logger)
	if err != nil || len(stages) == 0 {
		return p, err
	}
	chained := &cascade.Chained{Predictor: p, Stages: stages}
	if err := chained.Open(); err != nil {
		return p, config.UsageError{Err: errors.Join(err, CloseCascade(stages))}
	}
	return chained, nil
}
