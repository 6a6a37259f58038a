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
	if len(f.site.Cascade) == 0 {
		return nil
	}
	model := f.devices.Model()
	if !model.Recognised.Task.FindsObjects() {
		return config.Usagef("cascade: model %s says what whole images show and finds nothing to look at", model.Path)
	}
	stages, err := network.OpenCascade(ctx, &f.site.Groups[0].Network.Engine, f.site.Cascade, steps, true, f.logger)
	if err != nil {
		return err
	}
	attendant := &cascade.Secondary{Stages: stages, Labels: model.Metadata.Labels, Logger: f.logger}
	if err := attendant.Open(); err != nil {
		return config.UsageError{Err: errors.Join(err, network.CloseCascade(stages))}
	}
	f.cascade = attendant
	f.devices.Secondary = &pipeline.SecondaryStage{Networks: attendant, Labels: attendant.Labels}
	return nil
}

// secondary returns the counters of the secondary networks.
func (f *fleet) secondary() []cascade.Stats {
	if f.cascade == nil {
		return nil
	}
	return f.cascade.Stats()
}

// closeCascade ends the looks. The frame loops must have ended before.
func (f *fleet) closeCascade() error {
	if f.cascade == nil {
		return nil
	}
	return f.cascade.Close()
}
