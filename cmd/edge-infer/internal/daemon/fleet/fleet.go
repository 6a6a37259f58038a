// Package fleet is the cameras and networks of a run: it opens them by a Site, changes them to another one while they run, replaces and
// recovers networks, and reports their state.
package fleet

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
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/imagesize"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Fleet is the cameras and the predictors of their groups: it opens, changes, upgrades and closes them.
type Fleet struct {
	// Set before Open.
	Loop     bool // files start again at their end
	Process  *process.Runtime
	Logger   *slog.Logger
	OnChange func(capture.Stats) // a camera has entered another state; called from its goroutine
	Restart  func()              // asks for a new process
	Restarts int                 // how many there were
	Images   *imagesize.Cache    // sizes of the cameras' images

	cameras     camera.Set
	devices     device.Set
	cascade     *cascade.Secondary // nil for none
	upgrade     device.Upgrade
	verdict     atomic.Pointer[quantize.Verdict] // on the model that runs, nil for none
	demoWarning atomic.Bool                      // was logged
	overload    overload

	mu   sync.Mutex // held while cameras, settings or predictors change, which a network that hangs prolongs
	site atomic.Pointer[site.Site]
}

// Open opens the predictors of a site, and its secondary networks.
func (f *Fleet) Open(ctx context.Context, s site.Site, steps progress.Reporter) error {
	f.site.Store(&s)
	f.devices.ProbeSizes = func(cameras []site.Camera) []engine.Size {
		return f.Images.Sizes(ctx, imageSizeCameras(cameras), f.Logger)
	}
	f.devices.SetupThread = f.Process.Capture.SetupLoopThread
	f.devices.Swap = f.swap
	f.devices.Restart, f.devices.Restarts = f.Restart, f.Restarts
	if err := f.devices.Open(ctx, &s, steps, f.Logger); err != nil {
		return err
	}
	return f.openCascade(ctx, steps)
}

// OpenCameras opens the cameras, which deliver images after Run.
func (f *Fleet) OpenCameras() error {
	f.upgrade = device.Upgrade{Devices: &f.devices, Logger: f.Logger}
	f.recordVerdict(f.devices.Model().Model)
	f.cameras.Make = f.newCamera
	f.cameras.Settings = f.settings
	f.cameras.Logger = f.Logger
	cameras := f.site.Load().Cameras()
	f.Process.Capture.SetCameraCount(len(cameras))
	return f.cameras.Open(cameras)
}

// Site returns what runs. It never waits for a change.
func (f *Fleet) Site() site.Site { return *f.site.Load() }

// SetCamera puts the settings of one camera in force, from a site that differs in nothing else. With strict a class that the model lacks is
// an error. An error changes nothing.
func (f *Fleet) SetCamera(next site.Site, name string, strict bool) error {
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
func (f *Fleet) Apply(ctx context.Context, next site.Site) (kept int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	was := f.site.Load()
	if err := f.devices.Tune(&next, was); err != nil { // before any camera is touched
		return 0, err
	}
	f.site.Store(&next)
	cameras := next.Cameras()
	f.Process.Capture.SetCameraCount(len(cameras))
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
			warnUnverified(f.Logger, c.Name, c.Record)
		}
	}
	return kept, nil
}

// Names returns the class names of a camera group, none if its network is not open.
func (f *Fleet) Names(g *site.Group) zone.Names {
	m := f.devices.ModelOf(&g.Network)
	if m == nil {
		return zone.Names{}
	}
	return zone.Names{Labels: m.Metadata.Labels, Keypoints: m.Recognised.KeypointNames()}
}

// Outcome is the run's error: the frame loop's, else the cameras' when no frame came of any.
func (f *Fleet) Outcome(err error) error {
	failed := f.cameras.Failures()
	for _, totals := range f.devices.Totals() {
		if totals.Inferred > 0 && failed != nil {
			f.Logger.Error("camera failed", "error", failed)
			failed = nil
		}
	}
	if err == nil {
		err = failed
	}
	return err
}

// Silence returns an error with each camera's reason if no camera has delivered an image.
func (f *Fleet) Silence() error {
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
func (f *Fleet) recordVerdict(model engine.Model) {
	v, err := accuracy.VerdictOn(model)
	if err != nil {
		f.Logger.Warn("accuracy not known", "error", err)
	}
	f.verdict.Store(v)
}

// Ready prepares the frame loops for the cameras, which end the run after so many frames of all, 0 for never, by calling end. sinks take
// the results.
func (f *Fleet) Ready(frames int, end func(), sinks []pipeline.Sink) error {
	if frames > 0 {
		quota := pipeline.NewQuota(frames, end)
		for _, d := range f.devices.All {
			d.Quota = quota
		}
	}
	return f.devices.Ready(f.InLoop(), sinks)
}

// StartCameras has the cameras capture until StopCameras, or until ctx ends.
func (f *Fleet) StartCameras(ctx context.Context) { f.cameras.Run(ctx) }

// StopCameras ends capturing.
func (f *Fleet) StopCameras() { f.cameras.Stop() }

// CamerasEnded is closed when every camera has ended.
func (f *Fleet) CamerasEnded() <-chan struct{} { return f.cameras.Ended() }

// Run runs the networks until all cameras have ended, ctx ends, or no network is expected to recover.
func (f *Fleet) Run(ctx context.Context) error { return f.devices.Run(ctx, f.cameras.Ended()) }

// Upgradable reports whether TensorRT could take over somewhere if its plan were built.
func (f *Fleet) Upgradable() bool { return f.devices.Upgradable() }

// Upgrade has TensorRT take over where it can. It returns when it has, or when ctx ends.
func (f *Fleet) Upgrade(ctx context.Context) { f.upgrade.Run(ctx) }

// Opened reports whether Ready has prepared the frame loops.
func (f *Fleet) Opened() bool { return f.devices.Opened() }

// Stages are the times of all frame loops, nil before Open.
func (f *Fleet) Stages() *stage.Times { return f.devices.Stages }

// InLoop returns the cameras as the frame loops have them.
func (f *Fleet) InLoop() []pipeline.Camera { return f.cameras.InLoop() }

// Units returns the newest access units of a camera; nil if it has none.
func (f *Fleet) Units(camera string) *capture.Ring { return f.cameras.Units(camera) }

// SetSlowdown multiplies the interval of every camera.
func (f *Fleet) SetSlowdown(factor int) { f.devices.SetSlowdown(factor) }

// Stuck returns how long the frame loop that is furthest behind has made no progress while work is pending.
func (f *Fleet) Stuck() (longest time.Duration) {
	for _, d := range f.devices.All {
		longest = max(longest, d.Stuck())
	}
	return longest
}

// CloseCameras ends all cameras.
func (f *Fleet) CloseCameras() error { return f.cameras.Close() }

// Close closes the networks, the secondary ones within two seconds. The cameras must be closed and the frame loops have ended before.
func (f *Fleet) Close() error {
	var err error
	if f.cascade != nil {
		err = f.cascade.Close()
	}
	return errors.Join(err, f.devices.Close())
}
