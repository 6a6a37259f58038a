package sink

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"

// Webhooks hands events over to the senders of webhooks.
type Webhooks struct {
	Senders []*webhook.Sender
}

var _ Output = (*Webhooks)(nil)

// Event implements Output.
func (w *Webhooks) Event(e *Event) {
	for _, sender := range w.Senders {
		sender.Event(&e.Message)
	}
}
