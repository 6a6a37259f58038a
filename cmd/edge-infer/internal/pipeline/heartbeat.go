package pipeline

import (
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

// Heartbeat shows whether a loop is working, waiting or stuck. The loop calls Beat once per iteration and Rest before it waits. Others may
// read it at any time.
type Heartbeat struct{ at atomic.Int64 } // CLOCK_MONOTONIC of the latest beat, 0 while it rests

// Beat records that the loop made progress.
func (h *Heartbeat) Beat() { h.at.Store(capture.Monotonic()) }

// Rest records that the loop is waiting.
func (h *Heartbeat) Rest() { h.at.Store(0) }

// Stalled is how long ago the latest beat was, 0 while the loop rests.
func (h *Heartbeat) Stalled() time.Duration {
	at := h.at.Load()
	if at == 0 {
		return 0
	}
	return time.Duration(max(0, capture.Monotonic()-at))
}
