// Package daemon is one run of edge-infer: it assembles cameras, devices and outputs, watches over them, changes them while they run, and
// takes them down in reverse order.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/control"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/fleet"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/outputs"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/hawkbit"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/imagesize"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/systemd"
)

// ErrRestart ends a run that shall begin again as a new process.
var ErrRestart = control.ErrRestart

// Daemon holds the parameters of a run.
type Daemon struct {
	Settings config.Sources // read when the run starts and when it reloads
	Duration time.Duration  // the run ends after it; 0 for never
	Frames   int            // the run ends after so many; 0 for never
	Loop     bool           // files start again at their end, in their own time
	Save     string         // file for a video of the camera with everything drawn; empty for none
	JSON     bool           // detections go to Stdout as JSON lines, statistics as the last one
	Root     string         // put before the paths of sysfs, procfs and the like
	Version  string         // version of the program
	// Machine returns what engine plans must fit; see bundle.Pull.
	Machine func(context.Context) (bundle.Machine, error)

	Stdout, Stderr io.Writer
}

// Flags are the daemon's place on a command line.
func (d *Daemon) Flags(flags *pflag.FlagSet) {
	d.Settings.CameraFlag(flags, "camera, URI or NAME=URI; may be repeated")
	d.Settings.CascadeFlag(flags)
	d.Settings.Flags(flags)
	flags.DurationVar(&d.Duration, "duration", 0, "stop after this time")
	flags.IntVar(&d.Frames, "frames", 0, "stop after this many frames")
	flags.BoolVar(&d.Loop, "loop", false, "repeat files, at their own frame rate")
	flags.StringVar(&d.Save, "save", "", "record the camera into this file, .mp4 or .avi, with detections, zones and lines drawn")
	flags.BoolVar(&d.JSON, "json", false, "print detections as JSON lines and statistics as the last one")
	flags.StringVar(&d.Root, "root", "", "directory in front of /sys, /proc and /etc")
	_ = flags.MarkHidden("root") // the flag exists
}

// load reads the settings. An error is a config.UsageError.
func (d *Daemon) load() (*config.Config, error) {
	c, err := d.Settings.Load()
	switch {
	case err != nil:
		return nil, err
	case len(c.Cameras) == 0:
		return nil, config.UsageError{Err: config.ErrNoCamera}
	case d.Duration < 0 || d.Frames < 0:
		return nil, config.Usagef("--duration and --frames must not be negative")
	}
	if err := c.CheckModel(); err != nil {
		return nil, config.UsageError{Err: err}
	}
	return c, nil
}

// Run works until ctx ends, every camera has ended, the terminal is closed, or something fails that waiting cannot fix. Without a terminal
// SIGHUP reads the settings again. ErrRestart asks for a new process. An error in the settings alone is a config.UsageError; nothing has
// been opened then.
func (d *Daemon) Run(ctx context.Context) (err error) {
	hangup := make(chan os.Signal, 1)
	if terminal.Interactive() { // SIGHUP means that its window has been closed
		var stop context.CancelFunc
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	} else {
		signal.Notify(hangup, syscall.SIGHUP) // from now on it ends the program no more
	}
	defer func() {
		if errors.Is(err, ErrRestart) {
			countRestart()
			signal.Ignore(syscall.SIGHUP) // what it asks for the new process does anyway; it listens as soon as it can
		} else {
			signal.Stop(hangup)
		}
	}()
	read := control.ConfigurationFiles(&d.Settings)
	c, err := d.load()
	if err != nil {
		return err
	}
	if err := d.checkSave(c); err != nil {
		return err
	}
	asked := ctx // ended by a signal: then slow readers of the output are not waited for
	if d.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Duration)
		defer cancel()
	}
	r := &run{Daemon: d, changed: make(chan struct{}, 1)}
	out := report.NewOutput(d.Stdout)
	defer out.Close()
	screen := terminal.Over(out, d.Stdout)
	r.stderr = d.Stderr
	if screen.Live() && !d.JSON && terminal.Same(d.Stdout, d.Stderr) {
		r.stderr = screen // above the block
	}
	report.SetLevel(&r.level, c.Log)
	r.logger = report.NewChangingLogger(r.stderr, &r.level, c.LogFormat)
	r.wire(c, read, out, screen)
	defer context.AfterFunc(asked, func() { out.Hurry(outputDrainTime) })()
	return r.runUntil(ctx, hangup)
}

// judgeTimeout bounds the comparison of a new model with the running one, for which an engine plan may be built.
const judgeTimeout = 2 * time.Hour

// outputDrainTime is how long readers of the output may take for the rest of it when the run is ended.
const outputDrainTime = 2 * time.Second

// run connects the parts of a run: the fleet of cameras and predictors, the control over it, and the outputs.
type run struct {
	*Daemon
	level   slog.LevelVar // of logger
	logger  *slog.Logger
	service systemd.Service
	stderr  io.Writer // Stderr, or the screen where that is the same terminal

	fleet   fleet.Fleet
	updater update.Updater
	hawkbit hawkbit.Client
	control control.Control
	outputs outputs.Outputs

	monitor telemetry.Monitor
	changed chan struct{}      // holds a token when a camera has entered another state
	pulse   pipeline.Heartbeat // of the watch goroutine

	throttle throttle // watch goroutine only, but for its limits
	watchdog watchdog
	ending   ending
}

// wire connects the parts with each other.
func (r *run) wire(c *config.Config, read control.Files, out *report.Output, screen *terminal.Screen) {
	started := time.Now()
	r.monitor.Reader = &telemetry.Reader{Root: r.Root, FilesOnly: r.Root != ""}
	r.throttle.factor.Store(1)
	r.throttle.limits.Store(&c.Thermal)
	r.watchdog = watchdog{loops: &r.fleet, pulse: &r.pulse}

	f := &r.fleet
	f.Loop = r.Loop
	f.Logger = r.logger
	f.Process = process.Apply(c.Runtime, r.Root, r.logger)
	f.Images = imagesize.Open(c.State)
	f.OnChange = r.cameraChanged
	f.Restart = func() { r.control.End(ErrRestart) }
	f.Restarts = restarts()

	o := &r.outputs
	o.Settings = site.ResolveOutputs(c)
	o.Sources = &r.Settings
	o.Version = r.Version
	o.Root = r.Root
	o.JSON = r.JSON
	o.Save = r.Save
	o.Started = started
	o.Logger = r.logger
	o.Out = out
	o.Screen = screen
	o.Now = func() *state.State { return r.state(fleet.Interval{}) }
	o.Threshold = func(camera string) float32 {
		now := f.Site()
		if c := now.Camera(camera); c != nil {
			return float32(c.Settings.Confidence)
		}
		return 1
	}
	o.Reread = r.control.AskReload
	o.Jobs.Receive = r.updater.Receive

	u := &r.updater
	u.State = c.State
	u.Fleet = fleet.Models{Fleet: f}
	u.Judge = &judge.Judge{Timeout: judgeTimeout}
	u.Settings = &fleetSettings{config.FleetSettings{State: c.State}, r}
	u.Machine = r.Machine
	u.Logger = r.logger
	u.Report = r.reportJob
	u.Restart = func() { r.control.End(ErrRestart) }
	u.Open(c.Bundle)

	h := &r.hawkbit
	h.Device = c.Name
	h.Updater = u
	h.Attributes = r.attributes
	h.Logger = r.logger
	h.Open(c.HawkBit)

	k := &r.control
	k.Settings = &r.Settings
	k.Load = r.load
	k.Fleet = f
	k.Outputs = o
	k.Run = r
	k.Started = started
	k.Logger = r.logger
	k.Begin(c, read)
}

// cameraChanged publishes a camera's new state.
func (r *run) cameraChanged(now capture.Stats) {
	r.outputs.Available(now.Name, now.State == capture.Running)
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Adopted follows a configuration that has come into force.
func (r *run) Adopted(c *config.Config) {
	r.throttle.limits.Store(&c.Thermal)
	r.updater.Set(c.Bundle)
	r.hawkbit.Set(c.HawkBit)
	report.SetLevel(&r.level, c.Log)
	r.outputs.SetCameras(r.fleet.InLoop(), r.fleet.Recorded())
	if err := r.outputs.Announce(r.state(fleet.Interval{})); err != nil {
		r.logger.Error("announce", "error", err)
	}
}

// Reloading notifies the service manager.
func (r *run) Reloading(begins bool) {
	if begins {
		_ = r.service.Reloading(capture.Monotonic())
	} else {
		_ = r.service.Ready()
	}
}

func (r *run) run(ctx context.Context, cancel context.CancelCauseFunc, hangup <-chan os.Signal) (err error) {
	defer func() {
		if errors.Is(err, ErrRestart) {
			r.outputs.Out.Hurry(outputDrainTime)
		}
		err = errors.Join(err, r.close(errors.Is(err, ErrRestart)))
	}()
	if err := r.open(ctx); err != nil {
		if durationOver(ctx) && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no image in %v: the model was still being opened (raise --duration)", r.Duration)
		}
		return err
	}

	f := &r.fleet
	var rest sync.WaitGroup
	f.StartCameras(context.WithoutCancel(ctx))
	watch, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	rest.Go(func() { r.watch(watch) })
	rest.Go(func() { r.monitor.Run(watch) })
	rest.Go(func() { r.updater.Encode(watch) })
	rest.Go(func() { r.updater.Run(ctx) })
	rest.Go(func() { r.hawkbit.Run(ctx) })
	r.outputs.Run(watch, &rest, cancel)
	if r.control.Config().Engine.Backend == config.Auto && f.Upgradable() {
		rest.Go(func() { f.Upgrade(ctx) })
	}
	_ = r.service.Ready()
	rest.Go(func() { r.control.Reloads(ctx, hangup) })
	err = f.Run(ctx)
	if err == nil && ctx.Err() == nil {
		r.logger.Info("every camera is at its end: a file is read once; --loop repeats it at its own frame rate, as a camera")
	}
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = cause // a restart was requested, or an output has failed
	}
	var silent error
	if durationOver(ctx) {
		silent = f.Silence()
	}
	cancel(nil)
	f.StopCameras()
	_ = r.ending.part("cameras", partLimit, func() error { <-f.CamerasEnded(); return nil })
	_ = r.ending.part("events that wait for verification", partLimit, func() error { return r.outputs.Finish(r.ending.asked) })
	stopWatching()
	_ = r.ending.part("background work", partLimit, func() error { rest.Wait(); return nil })
	return cmp.Or(f.Outcome(err), silent)
}

// durationOver reports whether the run ends because of --duration.
func durationOver(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// open opens every part in the order in which they depend on each other. The MQTT client comes first: it has the remotely set values.
func (r *run) open(ctx context.Context) error {
	o := &r.outputs
	if err := o.OpenMQTT(&r.control); err != nil {
		return err
	}
	r.control.Stored = o.Remote
	waits := &outputs.Waiting{Outputs: o}
	starting := opening{service: &r.service, steps: report.Steps(r.stderr), onText: waits.SetReason}
	defer starting.Watch()()
	err := r.fleet.Open(ctx, r.control.Resolve(r.control.Config()), starting.Begin)
	o.Stages = r.fleet.Stages()
	if err = errors.Join(err, waits.Close()); err != nil {
		return err
	}
	if err := r.fleet.OpenCameras(); err != nil {
		return err
	}
	if err := o.Open(r.fleet.InLoop(), r.fleet.Recorded(), r.fleet.Units); err != nil {
		return err
	}
	if err := r.fleet.Ready(r.Frames, func() { r.control.End(nil) }, append(o.Sinks(), &r.updater)); err != nil {
		return err
	}
	now := o.Now()
	o.PrintStart(now)
	return o.Announce(now)
}

// close releases what open acquired. It works on a half-open run. For the service manager a restart in place is a long reload; stopping has
// a short time limit.
func (r *run) close(restart bool) error {
	if restart {
		_ = r.service.Reloading(capture.Monotonic())
	} else {
		_ = r.service.Stopping()
	}
	errs := []error{r.ending.part("page and terminal", viewLimit, r.outputs.CloseViews)}
	errs = append(errs, r.ending.part("cameras", partLimit, r.fleet.CloseCameras), r.ending.part("outputs", partLimit, r.outputs.Close))
	errs = append(errs, r.settle())
	if !r.ending.hangs() { // what hangs may use the memory of the networks
		errs = append(errs, r.fleet.Close())
	}
	return errors.Join(errs...)
}
