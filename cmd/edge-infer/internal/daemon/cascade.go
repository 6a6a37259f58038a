package daemon

import (
	"context"
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// openCascade opens the configured secondary networks.
func (f *fleet) openCascade(ctx context.Context, steps progress.Reporter) error {
	if len(f.site.Load().Cascade) == 0 {
		return nil
	}
	model := f.devices.Model()
	if !model.Recognised.Task.FindsObjects() {
		return config.Usagef("cascade: model %s classifies whole images: there are no objects for secondary networks", model.Path)
	}
	stages, err := network.OpenCascade(ctx, &f.site.Load().Groups[0].Network.Engine, f.site.Load().Cascade, steps, true, f.logger)
	if err != nil {
		return err
	}
	secondary := &cascade.Secondary{Stages: stages, Labels: model.Metadata.Labels, Logger: f.logger}
	if err := secondary.Open(); err != nil {
		return config.UsageError{Err: errors.Join(err, network.CloseCascade(stages))}
	}
	f.cascade = secondary
	f.devices.Secondary = &pipeline.SecondaryStage{Networks: secondary, Labels: secondary.Labels}
	return nil
}

// secondary returns the counters of the secondary networks.
func (f *fleet) secondary() []cascade.Stats {
	if f.cascade == nil {
		return nil
	}
	return f.cascade.Stats()
}

// closeCascade closes the secondary networks. The frame loops must have ended before.
func (f *fleet) closeCascade() error {
	if f.cascade == nil {
		return nil
	}
	return f.cascade.Close()
}
