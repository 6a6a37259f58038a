package pipeline

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// held is a predictor whose requests return when hold is not set, or has been unset.
type held struct {
	predict.Predictor
	slots    int
	took     time.Duration
	inSubmit bool // a held request does not return from Submit
	hold     atomic.Bool
	waits    atomic.Int32 // requests that are waited for
}

func (h *held) Model() (m predict.Model) {
	m.MaxBatch = 1
	return m
}

func (h *held) Slots() int { return h.slots }

func (h *held) wait() {
	time.Sleep(h.took)
	for h.hold.Load() {
		time.Sleep(100 * time.Millisecond)
	}
}

func (h *held) Submit(int, []engine.Image) error {
	h.waits.Add(1)
	if h.inSubmit {
		h.wait()
	}
	return nil
}

func (h *held) Wait(int) (*predict.BatchResult, error) {
	defer h.waits.Add(-1)
	h.wait()
	return &predict.BatchResult{Results: make([]predict.Result, 1)}, nil
}

// periodic is a camera with a frame every 100 ms.
type periodic struct {
	pool capture.Pool
	last time.Time
}

func (s *periodic) Take() (capture.Frame, bool) {
	if time.Since(s.last) < 100*time.Millisecond {
		return capture.Frame{}, false
	}
	frame, err := s.pool.Frame(engine.GRAY8, 16, 16)
	if err != nil {
		return frame, false
	}
	s.last = time.Now()
	frame.Captured, frame.Time = capture.Monotonic(), s.last
	return frame, true
}

// watched is a loop with a predictor that can be held, in a bubble of synctest.
type watched struct {
	*Pipeline
	predictor *held
	camera    *periodic
	faults    chan error
	holds     atomic.Int32 // abandoned calls that have not returned
	stop      context.CancelFunc
	outcome   chan error
}

func watch(t *testing.T, h *held) *watched {
	camera := &periodic{pool: capture.Pool{Buffers: 8}}
	w := &watched{predictor: h, camera: camera, faults: make(chan error, 1), outcome: make(chan error, 1)}
	w.Pipeline = &Pipeline{
		Predictor: h, Wakeup: make(signal, 1), Logger: slog.New(slog.DiscardHandler), Cameras: []Camera{{Name: "gate", Source: camera}},
		OnFault: func(err error) { w.faults <- err },
		Hold: func() func() {
			w.holds.Add(1)
			return func() { w.holds.Add(-1) }
		},
	}
	require.NoError(t, w.Open())
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.Wakeup.Signal()
			}
		}
	}()
	go func() { w.outcome <- w.Run(ctx, nil) }()
	return w
}

func (w *watched) inferred(d time.Duration) uint64 {
	before := w.Totals()[0].Inferred
	time.Sleep(d)
	return w.Totals()[0].Inferred - before
}

// TestAPredictorThatDoesNotReturnIsAbandoned: the fault is reported after ten seconds, the loop goes on with another predictor, the
// goroutine and the frames of the abandoned requests are back once the call returns.
func TestAPredictorThatDoesNotReturnIsAbandoned(t *testing.T) {
	for _, inSubmit := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t, &held{slots: 2, took: time.Millisecond, inSubmit: inSubmit})
			require.Positive(t, w.inferred(time.Minute))
			w.predictor.hold.Store(true)
			time.Sleep(9 * time.Second)
			require.Empty(t, w.faults)
			time.Sleep(2 * time.Second)
			require.ErrorContains(t, <-w.faults, "the network hangs: a request has not returned for 10s")
			require.EqualValues(t, 1, w.holds.Load())
			require.Zero(t, w.Stuck())

			next := &held{slots: 1, took: time.Millisecond}
			require.NoError(t, w.Replace(t.Context(), next))
			require.InDelta(t, 100, w.inferred(10*time.Second), 30)
			require.EqualValues(t, 1, w.holds.Load(), "the call has not returned")
			w.predictor.hold.Store(false)
			time.Sleep(time.Second)
			require.Zero(t, w.holds.Load())
			require.Zero(t, w.predictor.waits.Load(), "both requests were waited for")
			w.stop()
			require.NoError(t, <-w.outcome)
			require.Zero(t, w.camera.pool.Lent(), "every frame is back")
		})
	}
}

// TestASlowPredictorIsNotAbandoned: requests of 20 s are slow, also the first one, and one of twice that is no hang then.
func TestASlowPredictorIsNotAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch(t, &held{slots: 1, took: 20 * time.Second})
		time.Sleep(15 * time.Second)
		require.Greater(t, w.Overdue(), 9*time.Second, "the first request is reported")
		require.InDelta(t, 14, w.inferred(5*time.Minute), 2)
		require.Zero(t, w.Overdue())
		w.predictor.hold.Store(true)
		time.Sleep(40 * time.Second)
		w.predictor.hold.Store(false)
		require.InDelta(t, 14, w.inferred(5*time.Minute), 2)
		require.Empty(t, w.faults)
		w.stop()
		<-w.outcome
		time.Sleep(time.Minute)
		require.Zero(t, w.camera.pool.Lent())
	})
}

// TestTheLoopEndsWhileARequestHangs: within seconds, however long the request may take.
func TestTheLoopEndsWhileARequestHangs(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			w := watch(t, &held{slots: 2, took: took})
			time.Sleep(time.Second)
			w.predictor.hold.Store(true)
			time.Sleep(time.Second)
			begun := time.Now()
			w.stop()
			require.NoError(t, <-w.outcome)
			require.Less(t, time.Since(begun), 4*time.Second)
			w.predictor.hold.Store(false)
			time.Sleep(3 * time.Minute)
			require.Zero(t, w.camera.pool.Lent(), "every frame is back")
		})
	}
}
