package bench

import (
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
)

type sinkFunc func(*pipeline.Result)

func (f sinkFunc) Frame(in *pipeline.Result) { f(in) }

// queue is what a camera is without a mailbox: the oldest of the last four frames comes first, and what does not fit is lost.
type queue struct {
	waiting chan capture.Frame
	lost    uint64
}

func (q *queue) Take() (capture.Frame, bool) {
	select {
	case f := <-q.waiting:
		return f, true
	default:
		return capture.Frame{}, false
	}
}

func (q *queue) put(f capture.Frame) {
	select {
	case q.waiting <- f:
	default:
		q.lost++
	}
}

const (
	freshInterval = 20 * time.Millisecond
	freshFrames   = 600
)

// ages are those of the frames at the engine's start, which takes three intervals for each. unaccounted are the frames of which nobody says
// what became of them.
func ages(b *testing.B, source pipeline.Source, put func(capture.Frame), lost func() uint64) (all []time.Duration, unaccounted int64) {
	b.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	threads := programThreads()
	notify, ended := new(capture.Wakeup), make(chan struct{})
	watch := sinkFunc(func(in *pipeline.Result) {
		if in.Frame != nil {
			all = append(all, time.Duration(in.Timing.Submitted-in.Captured))
		}
	})
	p := &pipeline.Pipeline{
		Predictor: &requests{Predictor: &sleeper{takes: 3 * freshInterval}, batch: 1}, Wakeup: notify,
		SetupThread: threads.SetupLoopThread,
		Logger:      slog.New(slog.DiscardHandler),
		Cameras:     []pipeline.Camera{{Name: "cam0", Source: source}}, Sinks: []pipeline.Sink{watch},
	}
	require.NoError(b, p.Open())
	go func() {
		defer close(ended)
		runtime.LockOSThread() // for good, as a live camera's
		threads.SetupCaptureThread()
		start := capture.Monotonic()
		for i := range int64(freshFrames) {
			due := start + i*int64(freshInterval)
			sleepUntil(due)
			put(capture.Frame{
				Data: make([]byte, 12), Width: 2, Height: 2, Stride: 6, Format: engine.BGR, Seq: uint64(i), Captured: capture.Monotonic(),
				Time: time.Now(),
			})
			notify.Signal()
		}
	}()
	done := make(chan error)
	go func() { done <- p.Run(b.Context(), ended) }() // the loop keeps its thread
	require.NoError(b, <-done)
	return all, freshFrames - int64(len(all)) - int64(lost())
}

// BenchmarkFreshness says how old frames are when a slow engine begins with them, in camera intervals: from the newest-wins mailbox, and
// from a queue of four, as drivers and decoders have them.
func BenchmarkFreshness(b *testing.B) {
	p99 := func(all []time.Duration) float64 {
		all = slices.Sorted(slices.Values(all[4:])) // the queue fills first
		return float64(all[len(all)*99/100]) / float64(freshInterval)
	}
	var ours, theirs, unaccounted float64
	for b.Loop() {
		mailbox := &capture.Mailbox{}
		fresh, missing := ages(b, mailbox, mailbox.Put, mailbox.Dropped)
		fifo := &queue{waiting: make(chan capture.Frame, 4)}
		old, gone := ages(b, fifo, fifo.put, func() uint64 { return fifo.lost })
		ours, theirs, unaccounted = p99(fresh), p99(old), unaccounted+float64(missing+gone)
	}
	b.ReportMetric(ours, "age-p99-intervals")
	b.ReportMetric(theirs, "fifo-age-p99-intervals")
	b.ReportMetric(theirs/ours, "fifo/ours")
	b.ReportMetric(unaccounted, "unaccounted")
	b.ReportMetric(0, "ns/op")
}
