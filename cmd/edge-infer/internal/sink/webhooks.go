package sink

import (
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// Webhooks hands events over to the senders of webhooks.
type Webhooks struct {
	senders atomic.Pointer[[]*webhook.Sender] // nil for none
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

var _ Output = (*Webhooks)(nil)

// Event implements Output.
func (w *Webhooks) Event(e *Event) {
	for _, sender := range w.Senders() {
		sender.Event(&e.Message)
	}
}
