package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// autoEngine asks for the best backend that takes the model.
const autoEngine = "auto"

// openEngine opens the backend that c asks for, or the best one that takes the model. TensorRT asked for by name builds a missing plan first
// and shows its progress on out; chosen automatically it is passed over until somebody has built one.
func openEngine(ctx context.Context, c *config.Config, options engine.Options, logger *slog.Logger, out io.Writer) (engine.Engine, error) {
	e, err := auto.Open(ctx, options, auto.Choice{Engine: c.Engine.Backend}, logger)
	if c.Engine.Backend != tensorrt.Name || !errors.Is(err, tensorrt.ErrNoPlan) {
		return e, err
	}
	logger.Info("building the engine plan, this takes minutes once", "model", options.Path)
	if _, err := buildPlan(ctx, cachedPlan(options, logger), "", tensorrt.Cache{}, out); err != nil {
		return nil, err
	}
	return auto.Open(ctx, options, auto.Choice{Engine: c.Engine.Backend}, logger)
}
