package daemon

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
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/history"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/upload"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt"
	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// outputs publishes results and the state of the run: over MQTT, on the page, on the terminal and as JSON lines.
type outputs struct {
	// Set before the first call.
	config   *config.Config // as it was at the start; what reloads change of it is in the site
	settings *config.Sources
	device   string
	version  string
	root     string
	asJSON   bool
	save     string // file of the recording, empty for none
	started  time.Time
	logger   *slog.Logger
	out      *report.Output
	screen   *terminal.Screen

	now    func() *state.State // builds one, from any goroutine
	reload func()
	stages *stage.Times // set when the devices are open

	// Set by open; nil if not configured.
	broker    *embedded.Broker
	client    *mqtt.Client
	terminal  *report.Terminal
	lines     *report.JSON // with asJSON
	snapshots *sink.Snapshots
	store     *store.Store     // set by openMQTT, open from open on
	recorder  *record.Recorder // of clips; nil without a store
	recording *annotate.Recording
	uploader  *upload.Uploader // nil without a server
	audit     audit.Log        // set by openMQTT
	webhooks  *sink.Webhooks
	history   *history.Recorder
	web       *web.Server

	certificates certificates
	announced    sensors // known to Home Assistant; watch goroutine only
	seen         sink.SeenLabels
	unread       bool        // standard output cannot be written; set by closeViews
	closed       atomic.Bool // by close
}

// openBroker opens the embedded broker, if configured, once. It returns the addresses of the brokers to connect to.
func (o *outputs) openBroker() (brokers []string, err error) {
	m := &o.config.MQTT
	if m.URL != config.Embedded {
		return m.Brokers(), nil
	}
	if o.broker == nil {
		if o.broker, err = broker.Open(m, o.logger); err != nil {
			o.broker = nil
			return nil, err
		}
	}
	return []string{o.broker.URL()}, nil
}

// openMQTT makes the client ready.
func (o *outputs) openMQTT(controller mqtt.Controller) error {
	m := &o.config.MQTT
	if e := &o.config.Events; e.Directory != "" && e.Directory != config.Off {
		o.store = &store.Store{
			Directory: e.Directory, ClipDirectory: o.config.Clips.Directory, Days: e.Days, MaxBytes: int64(e.MaxMB) << 20, Logger: o.logger,
			Uploads: uploads(&o.config.Upload),
		}
	}
	o.audit.Logger = o.logger
	if o.config.State != "" {
		o.audit.Path = filepath.Join(o.config.State, "audit.jsonl")
	}
	brokers, err := o.openBroker()
	if err != nil || len(brokers) == 0 {
		return err
	}
	client := broker.NewClient(o.config, brokers)
	client.Logger = o.logger
	client.Acknowledged = func(took time.Duration) { o.stages.Record(stage.Acknowledgement, took) }
	if o.store != nil {
		client.BeforeEvent = o.store.Settle
	}
	if o.broker != nil {
		client.TLS.Insecure = true // it is this very process
	}
	if m.Discovery {
		client.DiscoveryPrefix = broker.DiscoveryPrefix
	}
	if m.Control {
		client.Controller = controller
		client.Changed = o.changed
	}
	if err := client.Open(); err != nil {
		return err
	}
	if o.broker != nil {
		o.broker.Trust(client.Identifiers()...)
	}
	o.client = client
	return nil
}

// open makes the other outputs ready. units returns the newest access units of a camera, nil if it has none.
func (o *outputs) open(cameras []pipeline.Camera, recorded []record.Camera, units func(string) *capture.Ring) error {
	if o.asJSON {
		o.lines = report.NewJSON(o.out, o.device)
	} else {
		o.terminal = report.NewTerminal(o.screen)
	}
	snapshots := &sink.Snapshots{Logger: o.logger}
	if o.client != nil {
		snapshots.Publisher = o.client
	}
	if o.store != nil {
		o.store.Open()
		snapshots.Store = o.store
	}
	snapshots.Open(cameras)
	o.snapshots = snapshots
	o.history = &history.Recorder{Logger: o.logger}
	if o.store != nil {
		o.history.Store = o.store
	}
	o.openClips(recorded)
	if err := errors.Join(o.openRecording(cameras), o.openUpload(), o.openWebhooks()); err != nil {
		return err
	}
	if err := o.openWeb(units); err != nil {
		return err
	}
	return nil
}

// openWeb listens on the page's address.
func (o *outputs) openWeb(units func(string) *capture.Ring) error {
	if o.config.Web.Listen == config.Off {
		return nil
	}
	server, err := o.server()
	if err != nil {
		return err
	}
	server.Source, server.History, server.Units = page(o.now), o.history, units
	if o.store != nil {
		server.Events = o.store
	}
	server.Zones = &zones{Zones: config.Zones{Sources: o.settings}, reload: o.reload}
	if err := server.Open(); err != nil {
		return err
	}
	o.web = server
	return nil
}

// server returns the configured web server.
func (o *outputs) server() (*web.Server, error) {
	w := &o.config.Web
	token, password, err := w.Secrets()
	if err != nil {
		return nil, err
	}
	return &web.Server{
		Address: w.Listen, Token: token, User: w.User, Password: password, CertificateFile: w.Certificate, KeyFile: w.Key, Profiling: w.Profiling,
		Directory: o.config.State, Audit: &o.audit, Logger: o.logger, FrameRate: w.FrameRate, MaxBytes: int64(w.MemoryMB) << 20,
	}, nil
}

// sinks returns the outputs that take results.
func (o *outputs) sinks() []pipeline.Sink {
	var sinks []pipeline.Sink
	if o.terminal != nil {
		sinks = append(sinks, o.terminal)
	}
	detect := &o.config.Detect
	publisher := &sink.Publisher{
		Client: o.client, JSON: o.lines, Masks: report.MaskForm(detect.Masks), Maps: report.Maps{Side: detect.MapSide, Unit: detect.DepthUnit},
		Seen: &o.seen, Module: payload.AnalyticsModule{ID: cmp.Or(o.config.Model.Path, "demo"), Version: o.version},
		RepeatInterval: o.config.MQTT.CountInterval,
	}
	stored := sink.Stored{Then: []pipeline.Sink{publisher}}
	if o.store != nil {
		publisher.Store = o.store
		stored.Store = o.store
	}
	if o.client != nil || o.store != nil {
		stored.Then = append(stored.Then, o.snapshots)
	}
	sinks = append(sinks, stored)
	if o.web != nil {
		sinks = append(sinks, o.web)
	}
	if o.recorder != nil {
		sinks = append(sinks, o.recorder)
	}
	if o.webhooks != nil {
		sinks = append(sinks, o.webhooks)
	}
	if o.recording != nil {
		sinks = append(sinks, o.recording)
	}
	sinks = append(sinks, o.history)
	return sinks
}

// Run runs the background work until ctx ends, in goroutines of group. The first failure is passed to failed.
func (o *outputs) Run(ctx context.Context, group *sync.WaitGroup, failed context.CancelCauseFunc) {
	work := func(run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil {
				failed(err)
			}
		})
	}
	work(o.history.Run)
	if o.recorder != nil {
		work(o.recorder.Run)
	}
	if o.web != nil {
		work(o.web.Run)
	}
	if o.client != nil {
		work(o.client.Run)
	}
	if o.uploader != nil {
		work(o.uploader.Run)
	}
	if o.webhooks != nil {
		for _, sender := range o.webhooks.Senders {
			work(sender.Run)
		}
	}
}

// closeViews ends what people and programs read while the run lasts. The cameras may still run.
func (o *outputs) closeViews() error {
	var errs []error
	if o.terminal != nil {
		errs = append(errs, o.terminal.Close())
	}
	if o.lines != nil {
		errs = append(errs, o.lines.Close())
	}
	o.unread = errors.Join(errs...) != nil
	if o.web != nil {
		errs = append(errs, o.web.Close())
	}
	return errors.Join(errs...)
}

// account prints the statistics of the run, as the last JSON line or for a person. The views and the MQTT client must have been closed
// before the State was built: the accounts of its messages are final then.
func (o *outputs) account(s *state.State) error {
	switch {
	case o.unread:
		return nil
	case o.lines != nil:
		return json.NewEncoder(o.out).Encode(map[string]any{"v": 1, "device": o.device, "stats": totals(s, time.Now())})
	case o.terminal != nil:
		return summary(s, time.Now()).Print(o.out)
	}
	return nil
}

// close ends the rest. The cameras must be closed before.
func (o *outputs) close() error {
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
	if o.client != nil {
		errs = append(errs, o.client.Close())
	}
	o.audit.Close()
	if o.webhooks != nil {
		for _, sender := range o.webhooks.Senders {
			errs = append(errs, sender.Close())
		}
	}
	if o.broker != nil {
		errs = append(errs, o.broker.Close())
	}
	if o.store != nil {
		errs = append(errs, o.store.Close())
	}
	return errors.Join(errs...)
}

// base returns a State with what is known before the run is open.
func (o *outputs) base() *state.State {
	return &state.State{Device: o.device, Version: o.version, Started: o.started}
}

// state returns the state of the outputs.
func (o *outputs) state() state.Outputs {
	now := state.Outputs{Certificates: o.certificates.read()}
	if o.web != nil {
		now.Page = o.web.URL()
	}
	if o.client != nil {
		health := o.client.Health()
		now.MQTT = &health
	}
	if o.broker != nil {
		stats := o.broker.Stats()
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
	if o.webhooks != nil {
		for _, sender := range o.webhooks.Senders {
			now.Webhooks = append(now.Webhooks, sender.Status())
		}
	}
	if o.uploader != nil {
		status := o.uploader.Status()
		now.Upload = &status
	}
	if o.lines != nil {
		now.LinesDropped = o.lines.Dropped()
	}
	return now
}
