package sink

import (
	"sync"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// Serial lets one frame loop at a time through to its sinks, each of which takes frames of one goroutine only.
type Serial struct {
	Next []pipeline.Sink

	mu sync.Mutex
}

// Frame implements pipeline.Sink.
func (s *Serial) Frame(in *pipeline.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sink := range s.Next {
		sink.Frame(in)
	}
}
