package sink

import "github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"

// Limit stops the run after a number of frames, and holds back what comes after them. Frame goroutine only.
type Limit struct {
	Frames int
	Stop   func() // ends the run, soon
	Next   []pipeline.Sink

	seen int
}

// Frame implements pipeline.Sink.
func (l *Limit) Frame(in *pipeline.Result) {
	if l.seen == l.Frames && in.Frame != nil {
		return
	}
	for _, sink := range l.Next {
		sink.Frame(in)
	}
	if in.Frame == nil {
		return
	}
	if l.seen++; l.seen == l.Frames {
		l.Stop()
	}
}
