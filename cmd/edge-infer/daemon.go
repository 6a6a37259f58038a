package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/postprocess/zone"
	"github.com/edge-infer/edge-infer/systemd"
)

// daemon is one run: it assembles the parts, watches over them and takes them down in reverse order.
type daemon struct {
	config         *config.Config
	flags          runFlags
	stdout, stderr io.Writer
	logger         *slog.Logger

	device    string // does not change while the daemon runs; config may
	started   time.Time
	building  building
	proof     atomic.Pointer[quantize.Verdict] // on what runs, nil for none
	engine    engine.Engine                    // the first one of the first device; upgrade may replace it
	broker    *mqtt.Broker
	client    *mqtt.Client
	fleet     fleet
	pipeline  loops
	terminal  *report.Terminal
	json      *report.JSON
	snapshots *snapshots
	web       *web.Server
	monitor   telemetry.Monitor
	limits    atomic.Pointer[config.Thermal] // that thermal works by
	thermal   telemetry.Policy               // watch goroutine only
	factor    int                            // that thermal asks for; watch goroutine only
	sensors   sensors                        // that Home Assistant knows; watch goroutine only
	service   systemd.Service
	progress  progress
	cancel    context.CancelCauseFunc // ends the run
	reload    chan struct{}           // holds a token when the configuration shall be read again
	read      version                 // of the configuration file that config was read from
	changing  sync.Mutex              // held while cameras, decoder or engine change: one change at a time
	level     *slog.LevelVar          // of logger
}

// run works until ctx ends, every camera has ended, or something fails that no waiting mends.
func (d *daemon) run(ctx context.Context) (err error) {
	d.device, d.started = d.config.Device, time.Now()
	d.monitor.Reader = &telemetry.Reader{Root: d.flags.root, FilesOnly: d.flags.root != ""}
	d.factor, d.progress = 1, progress{}
	d.limits.Store(&d.config.Thermal)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.cancel, d.reload = cancel, make(chan struct{}, 1)
	hangup := make(chan os.Signal, 1) // from now on it ends the program no more
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	defer func() { err = errors.Join(err, d.close(errors.Is(err, errRestart))) }()
	if err := d.open(ctx); err != nil {
		return err
	}

	var rest sync.WaitGroup
	d.fleet.Run(ctx)
	watch, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	rest.Go(func() { d.watch(watch) })
	rest.Go(func() { d.monitor.Run(watch) })
	if d.web != nil {
		rest.Go(func() {
			if err := d.web.Run(watch); err != nil {
				cancel(err)
			}
		})
	}
	if d.client != nil {
		rest.Go(func() {
			if err := d.client.Run(watch); err != nil {
				cancel(err)
			}
		})
	}
	if d.config.Engine.Backend == autoEngine && d.pipeline.upgradable(d.logger) {
		rest.Go(func() { d.upgrade(ctx) })
	}
	rest.Go(func() { d.reloads(ctx, hangup) })
	err = d.pipeline.Run(ctx, d.fleet.ended)
	if err == nil && errors.Is(context.Cause(ctx), errRestart) {
		err = errRestart
	}
	cancel(nil)
	<-d.fleet.ended
	stopWatching()
	rest.Wait()
	return d.outcome(err)
}

// outcome is the run's error: the frame loop's, else the cameras' when no frame came of any.
func (d *daemon) outcome(err error) error {
	failed := d.fleet.Failures()
	for _, totals := range d.pipeline.Totals() {
		if totals.Inferred > 0 && failed != nil {
			d.logger.Error("camera failed", "error", failed)
			failed = nil
		}
	}
	if err == nil {
		err = failed
	}
	return err
}

// open makes every part ready in the order in which they depend on each other.
func (d *daemon) open(ctx context.Context) error {
	if err := d.openEngine(ctx); err != nil {
		return err
	}
	if err := d.openMQTT(); err != nil {
		return err
	}
	d.fleet.make, d.fleet.logger = d.newMember, d.logger
	if err := d.fleet.Open(d.config.Cameras); err != nil {
		return err
	}
	var sinks []pipeline.Sink
	if d.flags.json {
		d.json = report.NewJSON(d.stdout, d.config.Device)
	} else {
		columns, live := report.IsTerminal(d.stdout)
		d.terminal = report.NewTerminal(d.stdout, live, columns)
		sinks = append(sinks, d.terminal)
		d.greet()
	}
	sinks = append(sinks, &publisher{client: d.client, json: d.json})
	d.snapshots = &snapshots{directory: d.config.Snapshots.Directory, keep: d.config.Snapshots.Keep, logger: d.logger}
	if d.client != nil {
		d.snapshots.publish = d.client.Snapshot
	}
	if err := d.snapshots.Open(d.fleet.Places()); err != nil {
		return err
	}
	if err := d.openWeb(); err != nil {
		return err
	}
	if d.web != nil {
		sinks = append(sinks, d.web)
	}
	if d.snapshots.publish != nil || d.snapshots.directory != "" || d.web != nil {
		sinks = append(sinks, d.snapshots)
	}
	if d.flags.frames > 0 {
		sinks = []pipeline.Sink{&limit{left: d.flags.frames, stop: func() { d.cancel(nil) }, next: sinks}}
	}
	if err := d.pipeline.Open(d.fleet.Places(), sinks); err != nil {
		return err
	}
	if d.client != nil {
		return d.announce()
	}
	return nil
}

func (d *daemon) openEngine(ctx context.Context) error {
	lowest := decodedScore(d.config)
	options, err := modelOptions(d.config, len(d.config.Cameras), lowest)
	if err != nil {
		return err
	}
	each, err := spread(options, d.config, d.logger)
	if err != nil {
		return err
	}
	for _, options := range each {
		e, err := d.openFirst(ctx, options)
		if err != nil {
			return err
		}
		at := &loop{options: options, notify: make(chan struct{}, 1)}
		at.memory.Lend(e)
		d.pipeline.all = append(d.pipeline.all, at)
		detector, err := openDetector(d.config, e.Model(), lowest)
		if err != nil {
			return err
		}
		at.Pipeline = &pipeline.Pipeline{
			Engine: e, Decoder: detector, Labels: e.Model().Metadata.Labels, Notify: at.notify, Logger: d.logger,
			Confidence: float32(d.config.Detect.Confidence), LowestScore: float32(lowest),
		}
		if d.engine == nil {
			d.engine = e
			d.proof.Store(proof(e.Model(), d.logger))
		}
	}
	return nil
}

// openFirst opens the engine that begins the run. Chosen automatically it need not be the last one: upgrade follows.
func (d *daemon) openFirst(ctx context.Context, options engine.Options) (engine.Engine, error) {
	if d.config.Engine.Backend == autoEngine {
		return auto.Open(ctx, options, auto.Choice{Yielding: true}, d.logger)
	}
	return openEngine(ctx, d.config, options, d.logger, d.stderr)
}

// decodedScore is what the decoder lets through: less than what is reported when objects are tracked.
func decodedScore(c *config.Config) float64 {
	if c.Detect.Track {
		return pipeline.LowestScore(c.Detect.Confidence)
	}
	return c.Detect.Confidence
}

func (d *daemon) openMQTT() error {
	m := &d.config.MQTT
	brokers := m.Brokers()
	if m.URL == config.Embedded {
		broker, err := openBroker(m, d.logger)
		if err != nil {
			return err
		}
		d.broker, brokers = broker, []string{broker.URL()}
	}
	if len(brokers) == 0 {
		return nil
	}
	client := newClient(d.config, brokers)
	client.Logger = d.logger
	if d.broker != nil {
		client.TLS.Insecure = true // it is this very process
	}
	if m.Discovery {
		client.DiscoveryPrefix = discoveryPrefix
	}
	if m.Control {
		client.Controller = controller{d}
	}
	if err := client.Open(); err != nil {
		return err
	}
	d.client = client
	return nil
}

// discoveryPrefix is where Home Assistant looks for devices.
const discoveryPrefix = "homeassistant"

// newClient makes the MQTT client that c describes.
func newClient(c *config.Config, brokers []string) *mqtt.Client {
	m := &c.MQTT
	return &mqtt.Client{
		Device: c.Device, Brokers: brokers, User: m.User, Password: password(), PasswordFile: passwordFile(m.PasswordFile),
		TLS:   mqtt.TLS{CAFile: m.CA, CertificateFile: m.Certificate, KeyFile: m.Key, Insecure: m.Insecure},
		Spool: mqtt.Spool{Directory: spoolDirectory(m.Spool, c.Device)},
	}
}

// newMember makes the camera that c describes, around a capture side that runs already where there is one. A file or directory gives every frame
// and waits for the network, unless it is to loop: then it stands for a live camera.
func (d *daemon) newMember(c config.Camera, running *capture.Camera) (*member, error) {
	uri, err := capture.ParseURI(c.URI)
	if err != nil {
		return nil, err
	}
	camera := running
	if camera == nil {
		at := d.pipeline.choose()
		camera = &capture.Camera{
			Name: c.Name, URI: c.URI, Alloc: at.memory.Alloc, StallTimeout: c.Stall, Notify: at.notify, Logger: d.logger,
			Lossless: uri.Kind == capture.File && !d.flags.loop && !uri.Loop,
		}
		if d.flags.loop {
			camera.AtEnd = capture.Loop
		}
		d.pipeline.put(camera, at)
	}
	follower, err := d.newFollower(c, uri)
	if err != nil {
		return nil, err
	}
	return &member{config: c, capture: camera, place: pipeline.Camera{
		Name: c.Name, Source: camera, Interval: c.Interval, Lossless: camera.Lossless, Follower: follower,
	}}, nil
}

// demoLine counts the parts on the demo belt, which runs to the right.
func demoLine() zone.Line {
	return zone.Line{Name: "belt", From: zone.Point{X: 0.5, Y: 1}, To: zone.Point{X: 0.5, Y: 0}}
}

// newFollower makes what tracks the camera's objects; nil where nothing is tracked.
func (d *daemon) newFollower(c config.Camera, uri capture.URI) (*pipeline.Follower, error) {
	model := d.engine.Model()
	if !d.config.Detect.Track || model.Metadata.Task == engine.Classify {
		return nil, nil
	}
	follower := &pipeline.Follower{Config: c.Analytics, Labels: model.Metadata.Labels, Confidence: float32(d.config.Detect.Confidence)}
	if uri.Kind == capture.Demo && len(c.Analytics.Lines) == 0 && c.Analytics.Width == 0 {
		follower.Config.Lines = []zone.Line{demoLine()}
	}
	return follower, follower.Open()
}

// openWeb takes the address of the page and says where it is.
func (d *daemon) openWeb() error {
	w := &d.config.Web
	if w.Listen == config.Off {
		return nil
	}
	token, err := webSecret("token", w.TokenFile)
	if err != nil {
		return err
	}
	secret, err := webSecret("password", w.PasswordFile)
	if err != nil {
		return err
	}
	server := &web.Server{
		Address: w.Listen, Token: token, User: w.User, Password: secret, CertificateFile: w.Certificate, KeyFile: w.Key, Profiling: w.Profiling, Logger: d.logger,
		Source: page{d}, Snapshot: d.snapshots.Find,
	}
	if d.flags.file != "" {
		server.Configure = func(_ context.Context, camera string, analytics zone.Config) error {
			if err := config.SetAnalytics(d.flags.file, camera, analytics); err != nil {
				return err
			}
			d.askReload()
			return nil
		}
	}
	if err := server.Open(); err != nil {
		return err
	}
	d.web = server
	if d.terminal != nil {
		fmt.Fprintf(d.stdout, "web page at %s\n", server.URL())
	}
	return nil
}

// webSecret is what the page's token or password file holds, without the line break at its end; empty when there is no such file.
func webSecret(kind, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("web %s: %w (web.%s_file names a file that this user can read)", kind, err, kind)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("web %s: %s is empty (write one into it: openssl rand -hex 16)", kind, path)
	}
	return secret, nil
}

// greet says what runs and where to watch it.
func (d *daemon) greet() {
	m := d.engine.Model()
	devices := d.pipeline.devices(func(at *loop) engine.Model { return at.Engine.Model() }) // no loop is open yet
	fmt.Fprintf(d.stdout, "model %s on %s %s, %s, %s\n", m.Path, m.Backend, m.BackendVersion, devices, m.Precision)
	if v := d.proof.Load(); v != nil {
		fmt.Fprintf(d.stdout, "accuracy in %s\n", proofText(v))
	}
	if d.broker != nil {
		fmt.Fprintf(d.stdout, "embedded MQTT broker at %s; watch: %s\n", d.broker.Addr(), subscribeCommand(d.broker.Addr(), d.config.Device))
	}
}

// close takes down what open made. It works on a half-open daemon. To the service manager a restart in place is a long reload: it gives one that
// stops only a little time.
func (d *daemon) close(restart bool) error {
	if restart {
		_ = d.service.Reloading(capture.Monotonic())
	} else {
		_ = d.service.Stopping()
	}
	var errs []error
	if d.terminal != nil {
		errs = append(errs, d.terminal.Close())
	}
	if d.json != nil {
		errs = append(errs, d.json.Close(), d.summary())
	}
	if d.web != nil {
		errs = append(errs, d.web.Close())
	}
	errs = append(errs, d.fleet.Close())
	if d.snapshots != nil {
		d.snapshots.Close()
	}
	if d.client != nil {
		errs = append(errs, d.client.Close())
	}
	if d.broker != nil {
		errs = append(errs, d.broker.Close())
	}
	return errors.Join(append(errs, d.pipeline.Close())...)
}

// askReload has the configuration read again soon.
func (d *daemon) askReload() {
	select {
	case d.reload <- struct{}{}:
	default:
	}
}

// summary prints what the run came to as the last JSON line.
func (d *daemon) summary() error {
	totals := d.totals()
	return json.NewEncoder(d.stdout).Encode(map[string]any{"v": 1, "device": d.config.Device, "stats": totals})
}
