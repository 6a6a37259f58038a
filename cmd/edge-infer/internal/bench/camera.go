package bench

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/engine"
)

// memoryCamera gives images that lie in memory, always or at a rate.
type memoryCamera struct {
	images        [][]byte
	width, height int
	interval      time.Duration // 0 for always
	start         int64         // CLOCK_MONOTONIC of the first frame
	next          uint64        // sequence number
	displaced     atomic.Uint64 // frames that were due and replaced by the next one before they were taken
}

// Take implements pipeline.Source.
func (c *memoryCamera) Take() (capture.Frame, bool) {
	now := capture.Monotonic()
	captured := now
	if c.interval > 0 {
		due := (now - c.start) / int64(c.interval)
		if now < c.start || uint64(due) < c.next {
			return capture.Frame{}, false
		}
		c.displaced.Add(uint64(due) - c.next)
		c.next = uint64(due)
		captured = c.start + due*int64(c.interval)
	}
	frame := capture.Frame{
		Data: c.images[c.next%uint64(len(c.images))], Width: c.width, Height: c.height, Stride: engine.BGR.RowBytes(c.width),
		Format: engine.BGR, Seq: c.next, Captured: captured, Time: time.Now(),
	}
	c.next++
	return frame, true
}

// pace wakes the frame loop at the moment a frame falls due, by a thread like that of a live camera.
func pace(ctx context.Context, threads *process.ThreadScheduling, notify *capture.Wakeup, sources []*memoryCamera) {
	runtime.LockOSThread() // for good, as a live camera's
	threads.SetupCaptureThread()
	for n := int64(0); ; n++ {
		for _, source := range sources { // in the order in which they fall due
			sleepUntil(source.start + n*int64(source.interval))
			if ctx.Err() != nil {
				return
			}
			notify.Signal()
		}
	}
}
