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

// memoryCamera is a camera with images in memory, available always or at a rate.
type memoryCamera struct {
	images        [][]byte
	width, height int
	interval      time.Duration // 0: always available
	start         int64         // CLOCK_MONOTONIC of the first frame
	next          uint64        // sequence number
	dropped       atomic.Uint64 // frames replaced by a newer one
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
		c.dropped.Add(uint64(due) - c.next)
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

// pace wakes the frame loop whenever a frame is due, on a thread like that of a live camera.
func pace(ctx context.Context, threads *process.ThreadScheduling, notify *capture.Wakeup, sources []*memoryCamera) {
	runtime.LockOSThread() // as the thread of a live camera
	threads.SetupCaptureThread()
	for n := int64(0); ; n++ {
		for _, source := range sources { // in the order of their start times
			sleepUntil(source.start + n*int64(source.interval))
			if ctx.Err() != nil {
				return
			}
			notify.Signal()
		}
	}
}
