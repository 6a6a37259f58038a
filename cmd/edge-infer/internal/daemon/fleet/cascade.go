package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// openCascade opens the configured secondary networks. They have as much time as the first networks give each other, without a limit where
// all cameras are videos. Then the cameras start without those that are not open yet, whose attributes are missing.
func (f *Fleet) openCascade(ctx context.Context, steps progress.Reporter) error {
	if len(f.site.Load().Cascade) == 0 {
		return nil
	}
	model := f.devices.Model()
	if !model.Recognised.Task.FindsObjects() {
		return config.Usagef("cascade: model %s classifies whole images: there are no objects for secondary networks", model.Path)
	}
	stages, err := network.CascadeStages(&f.site.Load().Groups[0].Network.Engine, f.site.Load().Cascade, steps, true, f.Logger)
	if err != nil {
		return err
	}
	secondary := &cascade.Secondary{Stages: stages, Labels: model.Metadata.Labels, Logger: f.Logger}
	if err := secondary.Open(); err != nil {
		return config.UsageError{Err: err}
	}
	limit := f.devices.Grace()
	if f.finite() {
		limit = 0
	}
	if err := secondary.Await(ctx, limit); err != nil {
		err = errors.Join(err, secondary.Close())
		if errors.As(err, new(*cascade.SettingsError)) {
			return config.UsageError{Err: err}
		}
		return err
	}
	context.AfterFunc(ctx, func() { time.AfterFunc(videoEndLimit, secondary.StopWaiting) })
	f.cascade = secondary
	f.devices.Secondary = &pipeline.SecondaryStage{Networks: secondary, Labels: secondary.Labels}
	f.devices.SecondaryStuck = secondary.Stuck
	return ctx.Err()
}

// videoEndLimit is how long the last frames of a video may wait for secondary networks when the run ends.
const videoEndLimit = time.Second
