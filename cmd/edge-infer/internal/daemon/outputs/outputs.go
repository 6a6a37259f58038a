// Package outputs publishes results and the state of a run: over MQTT, on the page, on the terminal, as JSON lines, to the event store and
// to other machines. It takes what it publishes from the frame loop and from a State, and knows nothing of cameras and networks.
package outputs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/audit"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/history"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/samples"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/verify"
	"github.com/edge-infer/edge-infer/mqtt"
	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Outputs are the outputs of a run. OpenMQTT comes first, then Open, Run, CloseViews and Close.
type Outputs struct {
	// Set before the first call.
	Settings *site.Outputs   // of the start, see inForce
	Sources  *config.Sources // that zones are saved in
	Version  string
	Root     string // of the paths of procfs and sysfs
	JSON     bool   // detections are written as JSON lines
	Save     string // file of the recording, empty for none
	Started  time.Time
	Logger   *slog.Logger
	Out      *report.Output
	Screen   *terminal.Screen
	Now      func() *state.State // builds one, from any goroutine
	Reread   func()              // has the configuration read again soon
	Jobs     Jobs                // over MQTT
	Stages   *stage.Times        // set when the networks are open
	// Threshold returns the confidence of a camera.
	Threshold func(camera string) float32

	// Set by Open; nil if not configured.
	broker    atomic.Pointer[embedded.Broker] // a reload replaces it
	client    *mqtt.Client
	terminal  *report.Terminal
	lines     *report.JSON // with JSON
	snapshots *sink.Snapshots
	store     *store.Store     // set by OpenMQTT, open from Open on
	recorder  *record.Recorder // of clips; nil without a store
	samples   *samples.Recorder
	recording *annotate.Recording
	uploads   uploads
	audit     audit.Log // set by OpenMQTT
	webhooks  webhooks
	gate      *verify.Gate // nil if no service verifies events
	history   *history.Recorder
	page      pageServer

	commands     commands // set by OpenMQTT
	background   background
	reloaded     atomic.Pointer[site.Outputs] // the settings in force; nil before the first reload
	certificates certificates
	announced    *homeassistant.Announcement // the last one; one goroutine at a time announces
	published    string                      // the status; watch goroutine only
	seen         sink.SeenLabels
	unread       bool        // standard output cannot be written; set by CloseViews
	closed       atomic.Bool // by Close
}

// OpenMQTT makes the client ready.
func (o *Outputs) OpenMQTT(controller mqtt.Controller) error {
	o.commands = commands{controller: controller, values: mqtt.OpenRemoteValues(o.Settings.MQTT.Spool, o.Logger)}
	o.store = newStore(o)
	o.audit.Logger = o.Logger
	if o.Settings.State != "" {
		o.audit.Path = filepath.Join(o.Settings.State, "audit.jsonl")
	}
	o.certificates.name(o.Settings)
	o.webhooks.outputs, o.uploads.outputs = o, o
	return o.openClient(controller)
}

// Open makes the other outputs ready. units returns the newest access units of a camera, nil if it has none.
func (o *Outputs) Open(cameras []pipeline.Camera, recorded []record.Camera, units func(string) *capture.Ring) error {
	if o.JSON {
		o.lines = report.NewJSON(o.Out, o.Settings.Device)
	} else {
		o.terminal = report.NewTerminal(o.Screen)
	}
	if err := o.openGate(); err != nil {
		return err
	}
	snapshots := &sink.Snapshots{Logger: o.Logger}
	if o.gate != nil {
		snapshots.Holder = o.gate
	}
	if o.client != nil {
		snapshots.Publisher = o.client
	}
	if o.store != nil {
		o.store.Open()
		snapshots.Store = o.store
	}
	snapshots.Open(cameras)
	o.snapshots = snapshots
	o.history = &history.Recorder{Logger: o.Logger}
	if o.store != nil {
		o.history.Store = o.store
	}
	o.openClips(recorded)
	frames{o}.open()
	if err := errors.Join(o.openRecording(cameras), o.uploads.Open(), o.webhooks.Open()); err != nil {
		return err
	}
	o.preparePage(units)
	return o.page.Open(&o.Settings.Web)
}

// Sinks returns the outputs that take results.
func (o *Outputs) Sinks() []pipeline.Sink {
	var sinks []pipeline.Sink
	if o.terminal != nil {
		sinks = append(sinks, o.terminal)
	}
	publisher := &sink.Publisher{
		Client: o.client, JSON: o.lines, Masks: report.MaskForm(o.Settings.Masks),
		Maps: report.Maps{Side: o.Settings.MapSide, Unit: o.Settings.DepthUnit},
		Seen: &o.seen, Module: payload.AnalyticsModule{ID: cmp.Or(o.Settings.Model, "demo"), Version: o.Version},
		RepeatInterval: o.Settings.MQTT.CountInterval,
	}
	if o.store != nil {
		publisher.Store = o.store
	}
	ordered := sink.Ordered{o.events(publisher), publisher}
	if o.client != nil || o.store != nil || o.gate != nil {
		ordered = append(ordered, o.snapshots)
	}
	sinks = append(sinks, ordered)
	sinks = append(sinks, &o.page)
	if o.recorder != nil {
		sinks = append(sinks, o.recorder)
	}
	sinks = append(sinks, o.samples)
	if o.recording != nil {
		sinks = append(sinks, o.recording)
	}
	sinks = append(sinks, o.history)
	return sinks
}

// Run runs the background work until ctx ends, in goroutines of group. The first failure is passed to failed.
func (o *Outputs) Run(ctx context.Context, group *sync.WaitGroup, failed context.CancelCauseFunc) {
	work := func(run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil {
				failed(err)
			}
		})
	}
	o.background.Run(ctx, group, failed)
	work(o.history.Run)
	work(o.samples.Run)
	if o.recorder != nil {
		work(o.recorder.Run)
	}
	if o.client != nil {
		work(o.client.Run)
	}
	if o.gate != nil {
		work(o.gate.Run)
	}
}

// CloseViews ends what people and programs read while the run lasts. The cameras may still run.
func (o *Outputs) CloseViews() error {
	var errs []error
	if o.terminal != nil {
		errs = append(errs, o.terminal.Close())
	}
	if o.lines != nil {
		errs = append(errs, o.lines.Close())
	}
	o.unread = errors.Join(errs...) != nil
	return errors.Join(append(errs, o.page.Close())...)
}

// Account prints the statistics of the run, as the last JSON line or for a person. The views and the MQTT client must have been closed
// before the State was built: the accounts of its messages are final then.
func (o *Outputs) Account(s *state.State) error {
	switch {
	case o.unread:
		return nil
	case o.lines != nil:
		return json.NewEncoder(o.Out).Encode(map[string]any{"v": 1, "device": o.Settings.Device, "stats": totals(s, time.Now())})
	case o.terminal != nil:
		return summary(s, time.Now()).Print(o.Out)
	}
	return nil
}

// Close ends the rest. The cameras must be closed before.
func (o *Outputs) Close() error {
	defer o.closed.Store(true)
	if o.snapshots != nil {
		o.snapshots.Close()
	}
	if o.recorder != nil {
		o.recorder.Close()
	}
	var errs []error
	if o.recording != nil {
		errs = append(errs, o.recording.Close())
	}
	if o.gate != nil {
		errs = append(errs, o.gate.Close())
	}
	if o.client != nil {
		errs = append(errs, o.client.Close())
	}
	o.commands.Close()
	o.audit.Close()
	errs = append(errs, o.webhooks.Close())
	if b := o.broker.Load(); b != nil {
		errs = append(errs, b.Close())
	}
	if o.store != nil {
		errs = append(errs, o.store.Close())
	}
	return errors.Join(errs...)
}

// State returns a State with what the outputs know of it.
func (o *Outputs) State() *state.State {
	all := o.base()
	now := &all.Outputs
	now.Certificates = o.certificates.read()
	now.Page = o.page.URL()
	if o.client != nil {
		health := o.client.Health()
		now.MQTT = &health
	}
	if b := o.broker.Load(); b != nil {
		stats := b.Stats()
		now.Embedded = &stats
	}
	if o.store != nil {
		stats := o.store.Stats()
		now.Store = &stats
	}
	if o.recorder != nil {
		status := o.recorder.Status()
		now.Clips = &status
	}
	if o.samples != nil { // nil if the run has failed before
		now.Samples = o.samples.Status()
	}
	now.Webhooks = o.webhooks.Status()
	if o.gate != nil {
		status := o.gate.Status()
		now.Verify = &status
	}
	now.Upload = o.uploads.Status()
	if o.lines != nil {
		now.LinesDropped = o.lines.Dropped()
	}
	return all
}

// base returns a State with what is known before anything is open.
func (o *Outputs) base() *state.State {
	return &state.State{Device: o.Settings.Device, Version: o.Version, Started: o.Started}
}

// Seen returns the labels of a camera that were counted often enough for an entity of their own.
func (o *Outputs) Seen(camera string) []string { return o.seen.Of(camera) }

// Remote returns what commands have set of a camera, in this run or an earlier one; nothing where neither MQTT nor the page could change it
// back.
func (o *Outputs) Remote(camera string) command.Kept {
	if (o.client == nil || o.client.Controller == nil) && o.Settings.Web.Listen == config.Off {
		return command.Kept{}
	}
	return o.commands.values.Remote(camera)
}

// Available publishes whether a camera delivers images.
func (o *Outputs) Available(camera string, available bool) {
	if o.client != nil {
		o.client.Available(camera, available)
	}
}

// PublishStats publishes a State with the rates and stages of the last interval.
func (o *Outputs) PublishStats(s *state.State) {
	if o.client != nil {
		o.client.Stats(statsPayload(s))
	}
}

// Live reports whether the terminal shows a block that is updated in place.
func (o *Outputs) Live() bool { return o.terminal != nil && o.terminal.Live() }

// Show shows a State with the rates of the last interval on the terminal.
func (o *Outputs) Show(s *state.State) {
	if o.terminal != nil {
		o.terminal.Status(terminalState(s, time.Now()))
	}
}

// Snapshot requests an image of a camera.
func (o *Outputs) Snapshot(camera string) error { return o.snapshots.Request(camera) }

// SetCameras replaces the cameras, and those that are recorded.
func (o *Outputs) SetCameras(cameras []pipeline.Camera, recorded []record.Camera) {
	o.snapshots.SetCameras(cameras)
	if o.recorder != nil {
		o.recorder.SetCameras(recorded)
	}
}

// Abandon leaves an MQTT client alone that Close has not closed: its events are on disk then, or lost, which is the error.
func (o *Outputs) Abandon() error {
	if o.closed.Load() || o.client == nil {
		return nil
	}
	return o.client.Abandon()
}
