package outputs

import (
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/verify"
)

// openGate opens the gate in front of the outputs of events, if a service is configured.
func (o *Outputs) openGate() error {
	gate := verify.New(o.Settings)
	if gate == nil {
		return nil
	}
	gate.Endpoint.Version, gate.Logger, gate.Durable = o.Version, o.Logger, o.eventsDurable
	if err := gate.Open(); err != nil {
		return err
	}
	o.gate = gate
	return nil
}

// events returns the outputs of events as a sink. They are behind the gate, if there is one.
func (o *Outputs) events(publisher *sink.Publisher) pipeline.Sink {
	var to []sink.Output
	if o.store != nil {
		to = append(to, sink.Storing{Store: o.store})
	}
	if o.client != nil {
		to = append(to, publisher)
	}
	to = append(to, &o.webhooks.sink)
	if o.gate != nil {
		o.gate.To = to
		to = []sink.Output{o.gate}
	}
	return &sink.Events{To: to}
}

// eventsDurable returns when the events that were handed over are on disk. Those that the store does not take in time are counted there.
func (o *Outputs) eventsDurable() error {
	var errs []error
	if o.store != nil {
		o.store.Settle()
	}
	if o.client != nil {
		errs = append(errs, o.client.SyncEvents())
	}
	for _, sender := range o.webhooks.sink.Senders() {
		errs = append(errs, sender.Sync())
	}
	return errors.Join(errs...)
}

// Finish publishes the events that wait for an answer, when the cameras have ended and Run's work has not. It waits for answers until hurry
// and a moment longer.
func (o *Outputs) Finish(hurry <-chan struct{}) error {
	if o.gate == nil {
		return nil
	}
	return o.gate.Finish(hurry)
}
