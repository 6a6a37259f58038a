package sink

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"

// Stored hands results to the event store before the sinks that publish the events or add to them: an event is stored before it is
// published, and its snapshot belongs to a stored event. Other sinks do not depend on each other.
type Stored struct {
	Store pipeline.Sink // nil for none
	Then  []pipeline.Sink
}

// Frame implements pipeline.Sink.
func (s Stored) Frame(in *pipeline.Result) {
	if s.Store != nil {
		s.Store.Frame(in)
	}
	for _, next := range s.Then {
		next.Frame(in)
	}
}
