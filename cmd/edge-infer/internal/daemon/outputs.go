package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/history"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt"
	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// outputs are where the results of a run go. What is not asked for is nil.
type outputs struct {
	broker    *embedded.Broker // the embedded one
	client    *mqtt.Client
	terminal  *report.Terminal
	lines     *report.JSON // with JSON
	snapshots *sink.Snapshots
	history   *history.Recorder
	web       *web.Server
}

// openBroker makes the embedded broker ready where that is to be used, once. It gives the addresses of those to connect to.
func (o *outputs) openBroker(r *run) (brokers []string, err error) {
	m := &r.config.MQTT
	if m.URL != config.Embedded {
		return m.Brokers(), nil
	}
	if o.broker == nil {
		if o.broker, err = broker.Open(m, r.logger); err != nil {
			o.broker = nil
			return nil, err
		}
	}
	return []string{o.broker.URL()}, nil
}

// openMQTT makes the client ready.
func (o *outputs) openMQTT(r *run) error {
	m := &r.config.MQTT
	brokers, err := o.openBroker(r)
	if err != nil || len(brokers) == 0 {
		return err
	}
	client := broker.NewClient(r.config, brokers)
	client.Logger = r.logger
	client.Acknowledged = func(took time.Duration) { r.devices.Stages.Record(stage.Acknowledgement, took) }
	if o.broker != nil {
		client.TLS.Insecure = true // it is this very process
	}
	if m.Discovery {
		client.DiscoveryPrefix = broker.DiscoveryPrefix
	}
	if m.Control {
		client.Controller = controller{r}
	}
	if err := client.Open(); err != nil {
		return err
	}
	o.client = client
	return nil
}

// open makes the other outputs ready.
func (o *outputs) open(r *run, cameras []pipeline.Camera) error {
	if r.JSON {
		o.lines = report.NewJSON(r.out, r.device)
	} else {
		o.terminal = report.NewTerminal(r.screen)
		r.greet()
	}
	kept := &r.config.Snapshots
	snapshots := &sink.Snapshots{Directory: kept.Directory, Keep: kept.Keep, Logger: r.logger}
	if o.client != nil {
		snapshots.Publish = o.client.Snapshot
	}
	if err := snapshots.Open(cameras); err != nil {
		return err
	}
	o.snapshots = snapshots
	o.history = &history.Recorder{Days: r.config.History.Days, Logger: r.logger}
	if r.config.State != "" && r.config.History.Days > 0 {
		o.history.Directory = filepath.Join(r.config.State, "history")
	}
	return o.openWeb(r)
}

// openWeb takes the address of the page and says where it is.
func (o *outputs) openWeb(r *run) error {
	if r.config.Web.Listen == config.Off {
		return nil
	}
	server, err := r.server()
	if err != nil {
		return err
	}
	server.Source, server.Snapshot, server.History = page{r}, o.snapshots.Find, o.history
	server.Zones = &zones{Zones: config.Zones{Sources: &r.Settings}, reload: r.askReload}
	if err := server.Open(); err != nil {
		return err
	}
	o.web = server
	if o.terminal != nil {
		fmt.Fprintf(r.screen, "web page at %s\n", server.URL())
	}
	return nil
}

// server is the page's, with what is configured of it.
func (r *run) server() (*web.Server, error) {
	w := &r.config.Web
	token, password, err := w.Secrets()
	if err != nil {
		return nil, err
	}
	return &web.Server{
		Address: w.Listen, Token: token, User: w.User, Password: password, CertificateFile: w.Certificate, KeyFile: w.Key, Profiling: w.Profiling,
		Directory: r.config.State, Logger: r.logger, FrameRate: w.FrameRate,
	}, nil
}

// greet says what runs and where to watch it.
func (r *run) greet() {
	views := r.devices.Groups()
	for i, d := range views {
		m := d.Running().Model()
		if i == 0 {
			m.Device = r.devices.Model().Device
		}
		if len(views) > 1 {
			fmt.Fprintf(r.screen, "%s: ", strings.Join(d.CameraNames(), ", "))
		}
		fmt.Fprintf(r.screen, "model %s on %s %s, %s, %s\n", d.Describe(), m.Backend, m.BackendVersion, m.Device, m.Precision)
		if v := r.verdict.Load(); v != nil && i == 0 {
			fmt.Fprintf(r.screen, "accuracy in %s\n", accuracy.Summary(v))
		}
		if taken := predict.Describe(m).Preprocessing; taken != "" {
			fmt.Fprintf(r.screen, "images taken as %s\n", taken)
		}
		fmt.Fprintf(r.screen, "outputs read as %s\n", m.Recognised)
	}
	if b := r.outputs.broker; b != nil {
		fmt.Fprintf(r.screen, "embedded MQTT broker at %s; watch: %s\n", b.Addr(), broker.SubscribeCommand(b.Addr(), r.device))
	}
}

// sinks returns the outputs that take results.
func (o *outputs) sinks(r *run) []pipeline.Sink {
	var sinks []pipeline.Sink
	if o.terminal != nil {
		sinks = append(sinks, o.terminal)
	}
	detect := &r.config.Detect
	sinks = append(sinks, &sink.Publisher{
		Client: o.client, JSON: o.lines, Masks: report.MaskForm(detect.Masks), Maps: report.Maps{Side: detect.MapSide, Unit: detect.DepthUnit},
		Module: payload.AnalyticsModule{ID: cmp.Or(r.config.Model.Path, "demo"), Version: r.Version},
	})
	if o.web != nil {
		sinks = append(sinks, o.web)
	}
	if o.client != nil || o.snapshots.Directory != "" || o.web != nil {
		sinks = append(sinks, o.snapshots)
	}
	sinks = append(sinks, o.history)
	if r.Frames > 0 {
		sinks = []pipeline.Sink{&sink.Limit{Frames: r.Frames, Stop: func() { r.cancel(nil) }, Next: sinks}}
	}
	return sinks
}

// Run runs what has work of its own until ctx ends, in goroutines of group. The first one to fail says so to failed.
func (o *outputs) Run(ctx context.Context, group *sync.WaitGroup, failed context.CancelCauseFunc) {
	work := func(run func(context.Context) error) {
		group.Go(func() {
			if err := run(ctx); err != nil {
				failed(err)
			}
		})
	}
	work(o.history.Run)
	if o.web != nil {
		work(o.web.Run)
	}
	if o.client != nil {
		work(o.client.Run)
	}
}

// closeReports ends what people and programs read, with the statistics as the last JSON line. The cameras may still run.
func (o *outputs) closeReports(r *run) error {
	var errs []error
	if o.terminal != nil {
		errs = append(errs, o.terminal.Close())
		if r.devices.Opened() {
			errs = append(errs, r.summarise())
		}
	}
	if o.lines != nil {
		err := o.lines.Close()
		if err == nil && r.devices.Opened() {
			err = json.NewEncoder(r.out).Encode(map[string]any{"v": 1, "device": r.device, "stats": r.totals()})
		}
		errs = append(errs, err)
	}
	if o.web != nil {
		errs = append(errs, o.web.Close())
	}
	return errors.Join(errs...)
}

// close ends the rest. The cameras must be closed before.
func (o *outputs) close() error {
	if o.snapshots != nil {
		o.snapshots.Close()
	}
	var errs []error
	if o.client != nil {
		errs = append(errs, o.client.Close())
	}
	if o.broker != nil {
		errs = append(errs, o.broker.Close())
	}
	return errors.Join(errs...)
}
