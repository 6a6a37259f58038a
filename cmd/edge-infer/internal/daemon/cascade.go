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

// openCascade opens the second networks that look at what the first one finds, where there are any.
func (r *run) openCascade(ctx context.Context, steps progress.Reporter) error {
	if len(r.site.Cascade) == 0 {
		return nil
	}
	model := r.devices.Model()
	if !model.Recognised.Task.FindsObjects() {
		return config.Usagef("cascade: model %s says what whole images show and finds nothing to look at", model.Path)
	}
	stages, err := network.OpenCascade(ctx, &r.config.Engine, r.site.Cascade, steps, true, r.logger)
	if err != nil {
		return err
	}
	attendant := &cascade.Secondary{Stages: stages, Labels: model.Metadata.Labels, Logger: r.logger}
	if err := attendant.Open(); err != nil {
		return config.UsageError{Err: errors.Join(err, network.CloseCascade(stages))}
	}
	r.cascade = attendant
	r.devices.Secondary = &pipeline.SecondaryStage{Networks: attendant, Labels: attendant.Labels}
	return nil
}

// closeCascade ends the looks. The frame loops must have ended before.
func (r *run) closeCascade() error {
	if r.cascade == nil {
		return nil
	}
	return r.cascade.Close()
}
