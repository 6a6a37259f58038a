package pipeline

import (
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

// Heartbeat tells a loop that works from one that is stuck. The loop beats on its way round and rests while it waits for something to do.
// Others may read it at any time.
type Heartbeat struct{ at atomic.Int64 } // CLOCK_MONOTONIC of the latest beat, 0 while it rests

// Beat says that the loop has got on.
func (h *Heartbeat) Beat() { h.at.Store(capture.Monotonic()) }

// Rest says that the loop waits for something to do.
func (h *Heartbeat) Rest() { h.at.Store(0) }

// Stalled is how long ago the latest beat was, 0 while the loop rests.
func (h *Heartbeat) Stalled() time.Duration {
	at := h.at.Load()
	if at == 0 {
		return 0
	}
	return time.Duration(max(0, capture.Monotonic()-at))
}
