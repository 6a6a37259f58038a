package main

import (
	"context"
	"log/slog"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
)

// openEngine opens the backend that c asks for, or the best one that takes the model.
func openEngine(ctx context.Context, c *config.Config, options engine.Options, logger *slog.Logger) (engine.Engine, error) {
	return auto.Open(ctx, options, auto.Choice{Engine: c.Engine.Backend}, logger)
}
