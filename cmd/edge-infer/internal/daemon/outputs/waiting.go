package outputs

import (
	"context"
	"errors"
	"sync"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mqttconfig"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt"
)

// Waiting serves the page and MQTT while an engine plan is built and no frames are processed yet. Its own server and client are closed
// before those of the run open.
type Waiting struct {
	Outputs *Outputs

	mu     sync.Mutex
	begun  bool
	text   string // what the run is waiting for
	page   pageServer
	client *mqtt.Client
	end    context.CancelFunc
	parts  sync.WaitGroup
}

// SetReason sets what the run is waiting for, and opens page and client on the first call.
func (w *Waiting) SetReason(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text = text
	if !w.begun {
		w.begun = true
		w.begin()
	}
	if w.client != nil {
		w.client.Status(statusPayload(w.state()))
	}
}

// begin opens what can be opened. Errors are left to the run, which meets them again.
func (w *Waiting) begin() {
	ctx, cancel := context.WithCancel(context.Background()) // until Close
	w.end = cancel
	logError := func(err error) {
		if err != nil && ctx.Err() == nil {
			w.Outputs.Logger.Warn("status not published while the run opens", "error", err)
		}
	}
	w.page.make = func(settings *config.Web) (*web.Server, error) {
		server, err := w.Outputs.server(settings)
		if err == nil {
			server.Source = page(w.State)
		}
		return server, err
	}
	w.page.start = func(run func(context.Context) error) (stop func()) {
		w.parts.Go(func() { logError(run(ctx)) })
		return nil // Close ends it
	}
	logError(w.page.Open(&w.Outputs.Settings.Web))
	if err := w.openMQTT(); err != nil {
		logError(err)
	} else if w.client != nil {
		w.parts.Go(func() { logError(w.client.Run(ctx)) })
	}
}

func (w *Waiting) openMQTT() error {
	brokers, err := w.Outputs.openBroker()
	if err != nil || len(brokers) == 0 {
		return err
	}
	client := mqttconfig.NewClient(w.Outputs.Settings, brokers)
	client.Spool.Directory = "" // events are the run's
	client.Logger = w.Outputs.Logger
	client.TLS.Insecure = client.TLS.Insecure || w.Outputs.broker.Load() != nil
	if err := client.Open(); err != nil {
		return err
	}
	w.client = client
	return nil
}

// Close closes page and client.
func (w *Waiting) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun = true // nothing is opened from now on
	if w.end == nil {
		return nil
	}
	w.end()
	w.end = nil
	var errs []error
	if w.client != nil {
		errs = append(errs, w.client.Close())
	}
	errs = append(errs, w.page.Close())
	w.parts.Wait()
	w.client = nil
	return errors.Join(errs...)
}

// State returns the State of the run while it is being opened.
func (w *Waiting) State() *state.State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state()
}

// state is State with the lock held.
func (w *Waiting) state() *state.State {
	now := w.Outputs.base()
	now.Opening = w.text
	now.Model.Path = w.Outputs.Settings.Model
	if w.client != nil {
		health := w.client.Health()
		now.Outputs.MQTT = &health
	}
	return now
}
