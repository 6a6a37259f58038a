package device

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

const (
	// openingGrace is how long the other networks may take once one is open, before the cameras start without them.
	openingGrace = 10 * time.Second
	// restartGrace is the same after a restart in place, where cameras have been at work before: plans are built then.
	restartGrace = 3 * time.Second
	// endLimit is how long an opening may take to end with the run.
	endLimit = 2 * time.Second
)

// opened is a predictor that was opened, or why it was not.
type opened struct {
	predictor predict.Predictor
	err       error
}

// errOpening is the fault of a network that is still being opened.
var errOpening = errors.New("it is still being opened")

// Open opens the networks of every camera group of a site on its devices. A backend that was chosen automatically may be replaced later by
// Upgrade; a configured one builds the plan that it lacks first, with its progress reported to steps.
func (s *Set) Open(ctx context.Context, all *site.Site, steps progress.Reporter, logger *slog.Logger) error {
	s.Stages = stage.New()
	s.logger = logger
	s.reopening, s.reopen = backoff.Network, openAgain
	used := 0 // devices of the groups before
	for i := range all.Groups {
		p, err := s.prepare(&all.Groups[i], used, steps, logger)
		if err != nil {
			return err
		}
		s.engines = join(s.engines, p)
		used += len(p.each)
	}
	if err := s.openDevices(ctx, steps); err != nil {
		return err
	}
	if err := s.checkOpened(); err != nil {
		return err
	}
	s.share()
	return nil
}

// checkOpened returns the errors of all devices, each once, if none has a predictor.
func (s *Set) checkOpened() error {
	var errs []error
	for _, d := range s.All {
		if !d.Waits() {
			return nil
		}
		if !slices.ContainsFunc(errs, func(other error) bool { return other.Error() == d.fault.err.Error() }) {
			errs = append(errs, d.fault.err)
		}
	}
	return errors.Join(errs...)
}

// prepared is a camera group whose model file has been read.
type prepared struct {
	group   *site.Group
	unread  predict.Options // before the model file was read
	options predict.Options
	each    []predict.Options // by device
	fitted  bool              // the input shape follows from the cameras' images
	err     error             // the model file could not be read; options is incomplete then
}

// prepare reads the model of a camera group. first is the position of its first device. The error is one in the settings.
func (s *Set) prepare(g *site.Group, first int, steps progress.Reporter, logger *slog.Logger) (*prepared, error) {
	p := &prepared{group: g}
	options := network.GroupOptions(g, logger)
	build := network.PlanBuilder{Progress: steps}.Build
	options.Build = func(ctx context.Context, plan tensorrt.BuildOptions) error {
		s.building.Lock() // one needs much of the memory
		defer s.building.Unlock()
		return build(ctx, plan)
	}
	options.ReserveCPU = g.Network.Engine.Backend == config.Auto
	options.ProbeSizes = func() []engine.Size {
		if side := g.Network.Inference.Tile; side > 0 {
			return []engine.Size{{Width: side, Height: side}}
		}
		sizes := s.ProbeSizes(g.Cameras)
		p.fitted = sizes != nil
		return sizes
	}
	options.PerImageErrors = true // a frame that a server does not finish in time is lost; a newer one is there
	if g.Network.Remote.Fallback == config.Local {
		options.Standby = config.Auto
	}
	p.unread = options
	p.err = options.Load()
	if errors.As(p.err, new(config.UsageError)) {
		return nil, p.err
	}
	var err error
	p.options = options
	p.each, err = spread(options, g, first, logger)
	return p, err
}

// newDevice returns a device of a group without a predictor.
func (s *Set) newDevice(e *sharedEngines, p *prepared, own predict.Options, steps progress.Reporter) *Device {
	d := &Device{group: p.group, prepared: p, engines: e, own: own, options: e.options(own), Notify: new(capture.Wakeup)}
	d.fault.reports = make(chan error, 1)
	d.opening = make(chan opened, 1)
	d.openNetwork = func(ctx context.Context, options predict.Options) (*predict.Network, error) {
		n, quick, err := openFirst(ctx, options, steps, s.logger)
		if quick {
			e.quick.Store(true)
		}
		return n, err
	}
	return d
}

// openDevices makes the devices and opens their predictors, all at the same time but for those that share engines. Once one is open the
// others have openingGrace, after a restart restartGrace: then the cameras start, and supervise waits for the rest. A device that cannot be
// opened has a fault, and is opened by supervise. The error is one in the settings, or that of ctx.
func (s *Set) openDevices(ctx context.Context, steps progress.Reporter) error {
	arrived := make(chan *Device, len(s.engines))
	for _, e := range s.engines {
		var all []*Device
		for _, p := range e.groups {
			for _, own := range p.each {
				all = append(all, s.newDevice(e, p, own, steps))
			}
		}
		s.All = append(s.All, all...)
		go func() {
			for _, d := range all {
				predictor, err := d.open(ctx, d.own)
				d.opening <- opened{predictor, err}
				arrived <- d
			}
		}()
	}
	results := map[*Device]opened{}
	var grace <-chan time.Time
	ended := ctx.Done()
	for waits := true; waits && len(results) < len(s.All); {
		select {
		case d := <-arrived:
			results[d] = <-d.opening
			if results[d].err == nil && grace == nil {
				grace = time.After(s.Grace())
			}
		case <-grace:
			waits = false
		case <-ended:
			ended, grace = nil, time.After(endLimit)
		}
	}
	var failed error
	for _, d := range s.All {
		result, ready := results[d]
		if !ready {
			result.err = errOpening
		}
		failed = errors.Join(failed, s.begin(d, result))
	}
	return cmp.Or(ctx.Err(), failed)
}

// Grace is how long other networks may take once one is open, before the cameras start without them.
func (s *Set) Grace() time.Duration {
	if s.Restarts > 0 {
		return restartGrace
	}
	return openingGrace
}

// begin makes a device ready to run with its first predictor, or without it if there was an error, which is returned if it is one in the
// settings.
func (s *Set) begin(d *Device, first opened) error {
	predictor := first.predictor
	if first.err != nil {
		predictor = newUnopened(d.own.Model)
		d.late = true
		d.fault.set(first.err, false, time.Time{})
	}
	d.Use(predictor)
	d.Pipeline = &pipeline.Pipeline{
		Predictor: predictor, Wakeup: d.Notify, SetupThread: s.SetupThread, Logger: s.logger, Stages: s.Stages,
		MinScore: float32(d.group.MinScore), OnFault: d.fault.report, Fault: first.err, Hold: d.hold,
	}
	if errors.As(first.err, new(config.UsageError)) {
		return first.err
	}
	return nil
}

// open opens the first predictor of a device, in engines that it shares with other groups.
func (d *Device) open(ctx context.Context, own predict.Options) (predict.Predictor, error) {
	if d.prepared.err != nil {
		return nil, d.prepared.err
	}
	builder := network.PredictorBuilder{Inference: d.group.Network.Inference, OpenNetwork: d.engines.each(d.openNetwork)}
	predictor, err := builder.Open(ctx, d.options)
	if err != nil {
		return nil, err
	}
	if err := predictor.Tune(own.Decoding); err != nil { // shared engines were opened with the lowest score of all groups
		return nil, errors.Join(err, predictor.Close())
	}
	return predictor, nil
}

// share makes the frame loops on one GPU or CPU share it.
func (s *Set) share() {
	loops := map[int][]*Device{}
	for _, d := range s.All {
		loops[d.options.Device] = append(loops[d.options.Device], d)
	}
	for _, all := range loops {
		if len(all) < 2 {
			continue
		}
		shared := new(pipeline.SharedDevice)
		for _, d := range all {
			d.DeviceShare = shared.Join()
		}
	}
}
