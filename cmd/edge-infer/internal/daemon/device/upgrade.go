package device

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
)

// Upgrade builds the plan that TensorRT lacks while another backend serves, and then has TensorRT take over.
type Upgrade struct {
	Devices *Set
	Logger  *slog.Logger

	state upgradeState
}

// Doing describes what it is doing, empty for nothing; failed means that it waits after a failure.
func (u *Upgrade) Doing() (text string, failed bool) {
	if c := u.state.Load(); c != nil {
		return c.text, c.failed
	}
	return "", false
}

// upgradeState is what an upgrade is doing, nil while there is nothing to do. As a progress.Step it receives the builder's progress.
type upgradeState struct{ atomic.Pointer[construction] }

// Count implements progress.Step.
func (s *upgradeState) Count(int, int) {}

// Note implements progress.Step.
func (s *upgradeState) Note(text string) { s.Store(&construction{text: text}) }

// Close implements progress.Step.
func (s *upgradeState) Close() {}

// construction describes what an upgrade is doing; failed means that it waits after a failure.
type construction struct {
	text   string
	failed bool
}

// retries are the pauses after a build that failed. One that ran out of memory may do better when other programs have ended, but building
// takes minutes and much of the machine, and what has failed five times will fail again.
func retries() []time.Duration {
	return []time.Duration{15 * time.Second, time.Minute, 4 * time.Minute, 16 * time.Minute}
}

// Run returns when TensorRT runs everywhere, or when ctx ends.
func (u *Upgrade) Run(ctx context.Context) {
	defer u.state.Store(nil)
	pauses := retries()
	for _, d := range u.Devices.All {
		d.refined = d.onTensorRT() && !d.engines.quick.Load()
	}
	for {
		err := u.replaceAll(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if len(pauses) == 0 || errors.Is(err, engine.ErrUnsupported) {
			u.Logger.Error("going on with "+u.Devices.Model().Backend, "error", err)
			u.state.Store(&construction{"TensorRT is not used: " + err.Error(), true})
			<-ctx.Done()
			return
		}
		u.Logger.Warn("going on with "+u.Devices.Model().Backend+" for now", "error", err, "retry", pauses[0])
		again := time.Now().Add(pauses[0]).Format(time.TimeOnly)
		u.state.Store(&construction{"TensorRT is tried again at " + again + ": " + err.Error(), true})
		select {
		case <-time.After(pauses[0]):
		case <-ctx.Done():
			return
		}
		pauses = pauses[1:]
	}
}

// replaceAll has every frame loop that is not on TensorRT yet go on with it: first with a plan that is built quickly, then with the one of
// full effort, which later starts find in the cache. Devices of one kind share plans.
func (u *Upgrade) replaceAll(ctx context.Context) error {
	all := u.Devices.All
	level, err := quickLevel(&all[0].options)
	if err != nil {
		return err
	}
	if level != nil {
		for _, d := range all {
			if d.onTensorRT() {
				continue
			}
			if err := u.replace(ctx, d, level); err != nil {
				return err
			}
		}
	}
	for _, d := range all {
		if d.refined {
			continue
		}
		err := u.replace(ctx, d, nil)
		if err != nil && ctx.Err() == nil && d.onTensorRT() {
			u.Logger.Warn("going on with the quickly built plan", "error", err)
			continue
		}
		if err != nil {
			return err
		}
		d.refined = true
	}
	return nil
}

// replace has one frame loop go on with the plan of a level.
func (u *Upgrade) replace(ctx context.Context, d *Device, level *int) error {
	p := plan{level: level, progress: func(string) progress.Step { return &u.state }, serving: u.Devices.Model().Backend, logger: u.Logger}
	builder := network.PredictorBuilder{Inference: d.group.Network.Inference, OpenNetwork: d.engines.each(p.open)}
	next, err := builder.Open(ctx, d.openingOptions())
	if err != nil {
		return err
	}
	return u.Devices.Swap(ctx, d, next)
}
