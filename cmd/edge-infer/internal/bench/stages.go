package bench

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// Stages says where the time of a frame goes, as medians in milliseconds: from arrival to submission, to the end of the network, to the
// message's hand-over.
type Stages struct {
	Submit  float64 `json:"submit_p50_ms"`
	Network float64 `json:"network_p50_ms"`
	Publish float64 `json:"publish_p50_ms"`
}

// stages notes when each frame went on, as the last sink.
type stages struct {
	on      atomic.Bool
	samples [3][]int64 // nanoseconds
}

func newStages() *stages {
	s := &stages{}
	for i := range s.samples {
		s.samples[i] = make([]int64, 0, 1<<18) // so that a short run does not allocate
	}
	return s
}

// Frame implements pipeline.Sink.
func (s *stages) Frame(in *pipeline.Inferred) {
	if in.Frame == nil || !s.on.Load() {
		return
	}
	s.samples[0] = append(s.samples[0], in.Timing.Submitted-in.Captured)
	s.samples[1] = append(s.samples[1], in.Timing.Done-in.Timing.Submitted)
	s.samples[2] = append(s.samples[2], capture.Monotonic()-in.Timing.Done)
}

// medians may be called when the frame loop has ended.
func (s *stages) medians() Stages {
	var medians [3]float64
	for i, samples := range s.samples {
		if len(samples) > 0 {
			slices.Sort(samples)
			medians[i] = milliseconds(time.Duration(samples[len(samples)/2]))
		}
	}
	return Stages{medians[0], medians[1], medians[2]}
}
