package bench

import (
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
)

// stages is the last sink and records the latency of each frame. Its histograms are read after the loop has ended.
type stages struct {
	on     atomic.Bool
	frames atomic.Uint64 // while on
	total  *Histogram
	parts  [3]*Histogram // until submission, until the end of inference, until hand-over

	seen atomic.Uint64 // all frames
	goal atomic.Pointer[goal]
}

// goal is a number of frames; reached is closed once they have been seen.
type goal struct {
	frames  uint64
	reached chan struct{}
}

func newStages() *stages {
	s := &stages{total: NewHistogram()}
	for i := range s.parts {
		s.parts[i] = NewHistogram()
	}
	return s
}

// after returns a channel that is closed after a number of further frames.
func (s *stages) after(frames uint64) <-chan struct{} {
	g := &goal{s.seen.Load() + frames, make(chan struct{})}
	s.goal.Store(g)
	return g.reached
}

// Frame implements pipeline.Sink.
func (s *stages) Frame(in *pipeline.Result) {
	if in.Frame == nil {
		return
	}
	if s.on.Load() {
		now := capture.Monotonic()
		s.frames.Add(1)
		s.total.Add(time.Duration(now - in.Captured))
		s.parts[0].Add(time.Duration(in.Timing.Submitted - in.Captured))
		s.parts[1].Add(time.Duration(in.Timing.Done - in.Timing.Submitted))
		s.parts[2].Add(time.Duration(now - in.Timing.Done))
	}
	seen := s.seen.Add(1)
	if g := s.goal.Load(); g != nil && seen >= g.frames && s.goal.CompareAndSwap(g, nil) {
		close(g.reached)
	}
}

// clocked converts the stage times for the document.
func clocked(all []stage.Summary) (clocks []Clock) {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	for _, s := range all {
		clocks = append(clocks, Clock{
			Stage: s.Stage.String(), Count: s.Count, P50: ms(s.P50), P99: ms(s.P99), P999: ms(s.P999), Max: ms(s.Max),
		})
	}
	return clocks
}

// medians must be called after the frame loop has ended.
func (s *stages) medians() *Stages {
	at := func(i int) float64 { return float64(s.parts[i].Median()) / float64(time.Millisecond) }
	return &Stages{Submit: at(0), Network: at(1), Publish: at(2)}
}
