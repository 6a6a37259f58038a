package sink

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"

// Ordered passes results to sinks one after the other: events are stored before images are added to them. Other sinks do not depend on each
// other.
type Ordered []pipeline.Sink

// Frame implements pipeline.Sink.
func (o Ordered) Frame(in *pipeline.Result) {
	for _, next := range o {
		next.Frame(in)
	}
}
