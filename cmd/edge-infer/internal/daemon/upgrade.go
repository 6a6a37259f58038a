package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// upgrade builds the plan that TensorRT lacks while another backend serves, and then has TensorRT take over.
type upgrade struct {
	run   *run
	state state
}

// state is what an upgrade is doing, nil while there is nothing to do. As a progress.Step it takes what the builder says.
type state struct{ atomic.Pointer[construction] }

// Count implements progress.Step.
func (s *state) Count(int, int) {}

// Note implements progress.Step.
func (s *state) Note(text string) { s.Store(&construction{text: text}) }

// Close implements progress.Step.
func (s *state) Close() {}

// construction is what an upgrade is doing; failed says that it waits after a failure.
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
func (u *upgrade) Run(ctx context.Context) {
	defer u.state.Store(nil)
	r, pauses := u.run, retries()
	for _, d := range r.devices.all {
		d.refined = d.network().Model().Backend == tensorrt.Name && !d.quick
	}
	for {
		err := u.replaceAll(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if len(pauses) == 0 || errors.Is(err, engine.ErrUnsupported) {
			r.logger.Error("going on with "+r.devices.Model().Backend, "error", err)
			u.state.Store(&construction{"TensorRT is not used: " + err.Error(), true})
			<-ctx.Done()
			return
		}
		r.logger.Warn("going on with "+r.devices.Model().Backend+" for now", "error", err, "retry", pauses[0])
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
func (u *upgrade) replaceAll(ctx context.Context) error {
	all := u.run.devices.all
	level, err := quickLevel(&all[0].options)
	if err != nil {
		return err
	}
	if level != nil {
		for _, d := range all {
			if d.network().Model().Backend == tensorrt.Name {
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
		if err != nil && ctx.Err() == nil && d.network().Model().Backend == tensorrt.Name {
			u.run.logger.Warn("going on with the quickly built plan", "error", err)
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
func (u *upgrade) replace(ctx context.Context, d *device, level *int) error {
	r := u.run
	p := plan{level: level, progress: func(string) progress.Step { return &u.state }, serving: r.devices.Model().Backend, logger: r.logger}
	next, err := p.open(ctx, d.options)
	if err != nil {
		return err
	}
	r.changing.Lock()
	defer r.changing.Unlock()
	err = next.Tune(network.Decoding(r.config, decoded(r.config))) // a reload may have changed it since
	if err == nil {
		err = d.Replace(ctx, next)
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	d.use(next)
	model := next.Model()
	r.judged(model.Model)
	for _, c := range r.cameras.All() {
		if r.devices.of(c.config.Name) == d {
			c.capture.Reallocate()
		}
	}
	r.logger.Info("engine replaced", "engine", model.Backend, "device", model.Device, "precision", model.Precision)
	return nil
}
