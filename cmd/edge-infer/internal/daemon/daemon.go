// Package daemon is one run of edge-infer: it assembles cameras, devices and outputs, watches over them, changes them while they run, and
// takes them down in reverse order.
package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/aspect"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
	"github.com/edge-infer/edge-infer/systemd"
)

// ErrRestart ends a run that shall begin again as a new process.
var ErrRestart = errors.New("restart asked for")

// Daemon is what a run is asked for.
type Daemon struct {
	Settings config.Sources // read when the run starts and when it reloads
	Duration time.Duration  // the run ends after it; 0 for never
	Frames   int            // the run ends after so many; 0 for never
	Loop     bool           // files start again at their end, in their own time
	JSON     bool           // detections go to Stdout as JSON lines, statistics as the last one
	Root     string         // put before the paths of sysfs, procfs and the like
	Version  string         // version of the program

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
		return nil, config.Usagef("no camera: use --camera 0 for the first one, or --camera demo")
	case d.Duration < 0 || d.Frames < 0:
		return nil, config.Usagef("--duration and --frames must not be negative")
	}
	return c, nil
}

// Run works until ctx ends, every camera has ended, or something fails that no waiting mends. ErrRestart asks for a new process. What is
// wrong with the settings alone is a config.UsageError, and nothing has been opened then.
func (d *Daemon) Run(ctx context.Context) (err error) {
	hangup := make(chan os.Signal, 1) // from now on it ends the program no more
	signal.Notify(hangup, syscall.SIGHUP)
	defer func() {
		if errors.Is(err, ErrRestart) {
			countRestart()
			signal.Ignore(syscall.SIGHUP) // what it asks for the new process does anyway; it listens as soon as it can
		} else {
			signal.Stop(hangup)
		}
	}()
	read := configurationFiles(&d.Settings)
	c, err := d.load()
	if err != nil {
		return err
	}
	asked := ctx // by a signal, to end: then nobody who does not read is waited for
	if d.Duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Duration)
		defer cancel()
	}
	r := &run{
		Daemon: d, config: c, device: c.Name, started: time.Now(), asked: make(chan struct{}, 1),
		changed: make(chan struct{}, 1), read: read,
	}
	r.out = report.NewOutput(d.Stdout)
	defer r.out.Close()
	r.screen, r.stderr = terminal.Over(r.out, d.Stdout), d.Stderr
	if r.screen.Live() && !d.JSON && terminal.Same(d.Stdout, d.Stderr) {
		r.stderr = r.screen // above the block
	}
	report.SetLevel(&r.level, c.Log)
	r.logger = report.NewChangingLogger(r.stderr, &r.level, c.LogFormat)
	r.process = process.Apply(c.Runtime, d.Root, r.logger)
	r.monitor.Reader = &telemetry.Reader{Root: d.Root, FilesOnly: d.Root != ""}
	r.throttle.factor = 1
	r.throttle.limits.Store(&c.Thermal)
	r.watchdog = watchdog{devices: &r.devices, pulse: &r.pulse}
	r.files = filesOf(c)
	r.certificates.name(c)
	defer context.AfterFunc(asked, func() { r.out.Hurry(farewell) })()
	return r.run(ctx, hangup)
}

// farewell is how long whoever reads the output may take over what is left of it when the run is told to end.
const farewell = 2 * time.Second

// run is a run that is under way.
type run struct {
	*Daemon
	device  string // does not change while it runs; config may
	started time.Time
	level   slog.LevelVar // of logger
	logger  *slog.Logger
	cancel  context.CancelCauseFunc // ends it
	ending  context.Context         // ends with it
	process *process.Runtime
	service systemd.Service
	out     *report.Output   // Stdout
	screen  *terminal.Screen // writes to out
	stderr  io.Writer        // Stderr, or the screen where that is the same terminal

	cameras camera.Set
	devices device.Set
	cascade *cascade.Secondary // nil for none
	outputs outputs
	upgrade device.Upgrade
	verdict atomic.Pointer[quantize.Verdict] // on what runs, nil for none
	monitor telemetry.Monitor
	asked   chan struct{}      // holds a token when the configuration shall be read again
	changed chan struct{}      // holds a token when a camera has entered another state
	pulse   pipeline.Heartbeat // of the watch goroutine

	toldDemo atomic.Bool // see tellDemo

	changing sync.Mutex     // held while the configuration, cameras or predictors change: one change at a time
	config   *config.Config // in force

	setting sync.Mutex // held for a moment while site or remote change; locked after changing
	site    site.Site  // what runs
	remote  map[string]command.Kept

	// Watch goroutine only, once the network is open.
	images *aspect.Cache // how large those of the cameras are
	// Watch goroutine only.
	throttle throttle // but for its limits
	sensors  sensors  // that Home Assistant knows

	watchdog     watchdog
	certificates certificates
	read         files                     // those that config was read from; reload goroutine only
	files        files                     // that the configuration names, as they were opened
	reloaded     atomic.Pointer[reloading] // the last one; nil before
}

func (r *run) run(ctx context.Context, hangup <-chan os.Signal) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cancel = cancel
	r.ending = ctx
	defer func() {
		if errors.Is(err, ErrRestart) {
			r.out.Hurry(farewell)
		}
		err = errors.Join(err, r.close(errors.Is(err, ErrRestart)))
	}()
	if err := r.open(ctx); err != nil {
		return err
	}

	var rest sync.WaitGroup
	r.cameras.Run(context.WithoutCancel(ctx))
	watch, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	rest.Go(func() { r.watch(watch) })
	rest.Go(func() { r.monitor.Run(watch) })
	r.outputs.Run(watch, &rest, cancel)
	if r.config.Engine.Backend == config.Auto && r.devices.Upgradable() {
		rest.Go(func() { r.upgrade.Run(ctx) })
	}
	_ = r.service.Ready()
	rest.Go(func() { r.reloads(ctx, hangup) })
	err = r.devices.Run(ctx, r.cameras.Ended())
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		err = cause // a restart is asked for, or an output has failed
	}
	cancel(nil)
	r.cameras.Stop()
	<-r.cameras.Ended()
	stopWatching()
	rest.Wait()
	return r.outcome(err)
}

// outcome is the run's error: the frame loop's, else the cameras' when no frame came of any.
func (r *run) outcome(err error) error {
	failed := r.cameras.Failures()
	for _, totals := range r.devices.Totals() {
		if totals.Inferred > 0 && failed != nil {
			r.logger.Error("camera failed", "error", failed)
			failed = nil
		}
	}
	if err == nil {
		err = failed
	}
	return err
}

// open makes every part ready in the order in which they depend on each other.
func (r *run) open(ctx context.Context) error {
	if err := r.outputs.openMQTT(r); err != nil { // it has the values that were set remotely
		return err
	}
	r.loadRemote()
	r.site = site.Resolve(r.config, r.remote)
	waits := &waiting{run: r}
	starting := opening{service: &r.service, steps: report.Steps(r.stderr), tell: waits.Tell}
	defer starting.Watch()()
	r.images = aspect.Open(r.config.State)
	r.devices.ProbeSizes = func(cameras []site.Camera) []engine.Size {
		return r.images.Sizes(ctx, aspectCameras(cameras), r.logger)
	}
	r.devices.SetupThread = r.process.Capture.SetupLoopThread
	err := r.devices.Open(ctx, &r.site, starting.Begin, r.logger)
	if err == nil {
		err = r.openCascade(ctx, starting.Begin)
	}
	if err = errors.Join(err, waits.Close()); err != nil {
		return err
	}
	r.upgrade = device.Upgrade{Devices: &r.devices, Swap: r.swap, Logger: r.logger}
	r.judged(r.devices.All[0].Running().Model().Model)
	r.cameras.Make = r.newCamera
	r.cameras.Settings = r.settings
	r.cameras.Logger = r.logger
	r.process.Capture.SetCameraCount(len(r.config.Cameras))
	if err := r.cameras.Open(r.site.Cameras()); err != nil {
		return err
	}
	inLoop := r.cameras.InLoop()
	if err := r.outputs.open(r, inLoop); err != nil {
		return err
	}
	if err := r.devices.Ready(inLoop, r.outputs.sinks(r)); err != nil {
		return err
	}
	return r.announce()
}

// close takes down what open made. It works on a half-open run. To the service manager a restart in place is a long reload: it gives one
// that stops only a little time.
func (r *run) close(restart bool) error {
	if restart {
		_ = r.service.Reloading(capture.Monotonic())
	} else {
		_ = r.service.Stopping()
	}
	errs := []error{r.outputs.closeReports(r)}
	errs = append(errs, r.cameras.Close(), r.outputs.close(), r.closeCascade(), r.devices.Close())
	return errors.Join(errs...)
}
