package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/aspect"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// fleet is the cameras and the predictors of their groups: it opens, changes, upgrades and closes them.
type fleet struct {
	// Set before Open.
	loop      bool
	process   *process.Runtime
	logger    *slog.Logger
	onChange  func(capture.Stats) // a camera has entered another state; called from its goroutine
	restart   func()              // asks for a new process
	onOpened  func()              // a network that could not be opened at the start has been opened
	images    *aspect.Cache       // sizes of the cameras' images
	clipUnits time.Duration       // how long cameras with clips keep their access units

	cameras     camera.Set
	devices     device.Set
	cascade     *cascade.Secondary // nil for none
	upgrade     device.Upgrade
	verdict     atomic.Pointer[quantize.Verdict] // on the model that runs, nil for none
	demoWarning atomic.Bool                      // was logged

	mu   sync.Mutex // held while cameras, settings or predictors change, which a network that hangs prolongs
	site atomic.Pointer[site.Site]
}

// Open opens the predictors of a site, and its secondary networks.
func (f *fleet) Open(ctx context.Context, s site.Site, steps progress.Reporter) error {
	f.site.Store(&s)
	f.devices.ProbeSizes = func(cameras []site.Camera) []engine.Size {
		return f.images.Sizes(ctx, aspectCameras(cameras), f.logger)
	}
	f.devices.SetupThread = f.process.Capture.SetupLoopThread
	f.devices.Swap = f.swap
	f.devices.Restart, f.devices.Restarts = f.restart, restarts()
	if err := f.devices.Open(ctx, &s, steps, f.logger); err != nil {
		return err
	}
	return f.openCascade(ctx, steps)
}

// OpenCameras opens the cameras, which deliver images after Run.
func (f *fleet) OpenCameras() error {
	f.upgrade = device.Upgrade{Devices: &f.devices, Logger: f.logger}
	f.recordVerdict(f.devices.Model().Model)
	f.cameras.Make = f.newCamera
	f.cameras.Settings = f.settings
	f.cameras.Logger = f.logger
	cameras := f.site.Load().Cameras()
	f.process.Capture.SetCameraCount(len(cameras))
	return f.cameras.Open(cameras)
}

// Site returns what runs. It never waits for a change.
func (f *fleet) Site() site.Site { return *f.site.Load() }

// SetCamera puts the settings of one camera in force, from a site that differs in nothing else. With strict a class that the model lacks is
// an error. An error changes nothing.
func (f *fleet) SetCamera(next site.Site, name string, strict bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted, before := next.Camera(name), f.site.Load().Camera(name)
	settings := pipelineSettings(wanted)
	if !strict {
		settings = f.settings(wanted)
	}
	if err := f.devices.SetSettings(name, *settings); err != nil {
		return err
	}
	if err := f.devices.Tune(&next, f.site.Load()); err != nil {
		return errors.Join(err, f.devices.SetSettings(name, *f.settings(before)))
	}
	f.site.Store(&next)
	if before.Settings.Detect && !wanted.Settings.Detect {
		f.devices.EndObjects(name)
	}
	return nil
}

// Apply puts a site in force whose networks are open. kept is the number of cameras that go on capturing. On an error everything is as
// before.
func (f *fleet) Apply(ctx context.Context, next site.Site) (kept int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.site.Load()
	if err := f.devices.Tune(&next, was); err != nil { // before any camera is touched
		return 0, err
	}
	f.site.Store(&next)
	cameras := next.Cameras()
	f.process.Capture.SetCameraCount(len(cameras))
	kept, err = f.cameras.Change(cameras, func(inLoop []pipeline.Camera) error { return f.devices.Arrange(ctx, inLoop) })
	if err != nil {
		f.site.Store(was)
		_ = f.devices.Tune(was, &next) // it worked before
		return kept, err
	}
	for i := range cameras { // others are new, see newCamera
		c := &cameras[i]
		before := was.Camera(c.Name)
		if before != nil && before.SameCapture(c) && before.Record != c.Record {
			f.warnUnverified(c.Name, c.Record)
		}
	}
	return kept, nil
}

// Names returns the class names of a camera group, none if its network is not open.
func (f *fleet) Names(g *site.Group) zone.Names {
	m := f.devices.ModelOf(&g.Network)
	if m == nil {
		return zone.Names{}
	}
	return zone.Names{Labels: m.Metadata.Labels, Keypoints: m.Recognised.KeypointNames()}
}

// outcome is the run's error: the frame loop's, else the cameras' when no frame came of any.
func (f *fleet) outcome(err error) error {
	failed := f.cameras.Failures()
	for _, totals := range f.devices.Totals() {
		if totals.Inferred > 0 && failed != nil {
			f.logger.Error("camera failed", "error", failed)
			failed = nil
		}
	}
	if err == nil {
		err = failed
	}
	return err
}

// silence returns an error with each camera's reason if no camera has delivered an image.
func (f *fleet) silence() error {
	var errs []error
	for _, c := range f.cameras.All() {
		s := c.Capture.Stats()
		if s.Captured > 0 {
			return nil
		}
		errs = append(errs, fmt.Errorf("camera %s: no image: %s", s.Name, cmp.Or(s.Reason, "it is being opened")))
	}
	return errors.Join(errs...)
}

// recordVerdict records the accuracy gate's verdict on the model that runs from now on.
func (f *fleet) recordVerdict(model engine.Model) {
	v, err := accuracy.VerdictOn(model)
	if err != nil {
		f.logger.Warn("accuracy not known", "error", err)
	}
	f.verdict.Store(v)
}
