package sink

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// Webhooks hands events over to the senders of webhooks. Frame goroutine only.
type Webhooks struct {
	Senders []*webhook.Sender

	details report.Details
}

var _ pipeline.Sink = (*Webhooks)(nil)

// Frame implements pipeline.Sink.
func (w *Webhooks) Frame(in *pipeline.Result) {
	if in.Events == nil || in.Tracker == nil {
		return
	}
	w.details.Begin()
	for i := range in.Events.Events {
		message := eventOf(in, &in.Events.Events[i], &w.details)
		for _, sender := range w.Senders {
			sender.Event(&message)
		}
	}
}
