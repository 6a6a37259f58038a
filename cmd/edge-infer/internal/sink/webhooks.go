package sink

import (
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// Webhooks hands events over to the senders of webhooks. Frame belongs to the frame goroutine.
type Webhooks struct {
	senders atomic.Pointer[[]*webhook.Sender] // nil for none

	details report.Details
}

// Set replaces the senders. It may be called from any goroutine. Events of a frame that is handed over meanwhile may go to the old ones.
func (w *Webhooks) Set(senders []*webhook.Sender) { w.senders.Store(&senders) }

// Senders returns the current senders, which the caller must not change. It may be called from any goroutine.
func (w *Webhooks) Senders() []*webhook.Sender {
	if senders := w.senders.Load(); senders != nil {
		return *senders
	}
	return nil
}

var _ pipeline.Sink = (*Webhooks)(nil)

// Frame implements pipeline.Sink.
func (w *Webhooks) Frame(in *pipeline.Result) {
	senders := w.Senders()
	if len(senders) == 0 || in.Events == nil || in.Tracker == nil {
		return
	}
	w.details.Begin()
	for i := range in.Events.Events {
		message := eventOf(in, &in.Events.Events[i], &w.details)
		for _, sender := range senders {
			sender.Event(&message)
		}
	}
}
