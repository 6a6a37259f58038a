package device

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// The errors of a network that fails, and of opening it again.
var (
	errLost    = errors.New("the GPU is gone")
	errRefused = errors.New("no GPU")
)

// scripted is a predictor that finds nothing, or fails.
type scripted struct {
	predict.Predictor
	failing       atomic.Bool
	invalid       atomic.Bool // the output of every image is
	contradiction atomic.Pointer[predict.Contradiction]
	hang          atomic.Pointer[chan struct{}] // requests return when it is closed
}

func (s *scripted) Model() (m predict.Model) {
	m.MaxBatch = 1
	return m
}

func (s *scripted) Slots() int { return 1 }

func (s *scripted) Submit(int, []engine.Image) error {
	if s.failing.Load() {
		return errLost
	}
	return nil
}

func (s *scripted) Close() error { return nil }

func (s *scripted) Alloc(int) (*engine.Buffer, error) { return nil, errLost }

func (s *scripted) Wait(int) (*predict.BatchResult, error) {
	if hang := s.hang.Load(); hang != nil {
		<-*hang
	}
	result := &predict.BatchResult{Results: make([]predict.Result, 1), Contradiction: s.contradiction.Load()}
	if s.invalid.Load() {
		result.Results[0].Err = &predict.InvalidOutput{Reason: "scores that are not from 0 to 1"}
	}
	return result, nil
}

// signal is a wakeup for synctest: a futex would stop its clock.
type signal chan struct{}

func (s signal) Signal() {
	select {
	case s <- struct{}{}:
	default:
	}
}

func (s signal) Wait() { <-s }

// steady is a camera with a frame every 100 ms.
type steady struct {
	pool capture.Pool
	last time.Time
}

func (s *steady) Take() (capture.Frame, bool) {
	if time.Since(s.last) < 100*time.Millisecond {
		return capture.Frame{}, false
	}
	s.last = time.Now()
	frame, err := s.pool.Frame(engine.GRAY8, 16, 16)
	frame.Captured, frame.Time = capture.Monotonic(), s.last
	return frame, err == nil
}

// trial is a set of two networks with a camera each, "a" and "b".
type trial struct {
	Set
	networks [2]*scripted
	opened   atomic.Int32 // attempts to open a predictor again
	refuse   atomic.Bool  // makes them fail
	stop     context.CancelFunc
	outcome  chan error
}

// start runs the set in a bubble of synctest.
func start(t *testing.T) *trial { return startWith(t, func(*trial) {}) }

// startWith runs a set that was changed before.
func startWith(t *testing.T, change func(*trial)) *trial {
	s := &trial{outcome: make(chan error, 1)}
	s.logger = slog.New(slog.DiscardHandler)
	s.reopening = backoff.Exponential{Min: time.Second, Max: time.Minute}
	s.Swap = func(ctx context.Context, d *Device, next predict.Predictor) error {
		err := d.Replace(ctx, next)
		d.Use(next)
		return err
	}
	s.reopen = func(context.Context, *Device) (predict.Predictor, error) {
		s.opened.Add(1)
		if s.refuse.Load() {
			return nil, errRefused
		}
		return new(scripted), nil
	}
	for i, name := range []string{"a", "b"} {
		s.networks[i] = new(scripted)
		d := &Device{group: &site.Group{Cameras: []site.Camera{{Name: name}}}}
		d.fault.reports = make(chan error, 1)
		d.Use(s.networks[i])
		camera := &steady{}
		t.Cleanup(func() { _ = camera.pool.Close() })
		d.Pipeline = &pipeline.Pipeline{
			Predictor: s.networks[i], Wakeup: make(signal, 1), Logger: s.logger, OnFault: d.fault.report, Hold: d.hold,
			Cameras: []pipeline.Camera{{Name: name, Source: camera}},
		}
		require.NoError(t, d.Pipeline.Open())
		s.All = append(s.All, d)
	}
	change(s)
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			for _, d := range s.All {
				d.Wakeup.Signal()
			}
		}
	}()
	go func() { s.outcome <- s.Run(ctx, nil) }()
	return s
}

// wait lets time pass and returns the frames inferred by each network in it.
func (s *trial) wait(d time.Duration) (frames [2]uint64) {
	before := s.Totals()
	time.Sleep(d)
	synctest.Wait()
	for i, now := range s.Totals() {
		frames[i] = now.Inferred - before[i].Inferred
	}
	return frames
}

// TestAFailedNetworkIsOpenedAgain: the network of one camera fails for minutes and comes back; the other camera loses no frame.
func TestAFailedNetworkIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.wait(time.Minute)
		s.refuse.Store(true)
		s.networks[0].failing.Store(true)
		frames := s.wait(5 * time.Minute)
		require.Zero(t, frames[0])
		require.InDelta(t, 3000, frames[1], 300)
		require.Positive(t, s.opened.Load())
		require.Less(t, s.opened.Load(), int32(15), "pauses grow")
		totals := s.Totals()
		require.True(t, totals[0].NetworkFailed)
		require.Contains(t, totals[0].Error, "network failed, opened again at ")
		require.Contains(t, s.lastError(), errRefused.Error())
		require.False(t, totals[1].NetworkFailed)
		require.Zero(t, totals[1].DroppedError)
		s.refuse.Store(false)
		s.wait(time.Minute)
		frames = s.wait(time.Minute)
		require.InDelta(t, 600, frames[0], 60)
		require.False(t, s.Totals()[0].NetworkFailed)
		require.Empty(t, s.lastError())
		s.stop()
		require.NoError(t, <-s.outcome)
	})
}

// TestANetworkWhoseOutputTurnsInvalidIsOpenedAgain: after a minute of right images every output is invalid, as with damaged GPU memory. A
// new predictor is right again; the other camera loses no frame.
func TestANetworkWhoseOutputTurnsInvalidIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.wait(time.Minute)
		s.networks[0].invalid.Store(true)
		s.wait(time.Minute)
		require.EqualValues(t, 1, s.opened.Load())
		frames := s.wait(time.Minute)
		require.InDelta(t, 600, frames[0], 60)
		require.InDelta(t, 600, frames[1], 60)
		totals := s.Totals()
		require.InDelta(t, 110, totals[0].DroppedError, 25, "ten seconds and a pause")
		require.Zero(t, totals[1].DroppedError)
		s.stop()
		require.NoError(t, <-s.outcome)
	})
}

// TestAContradictionIsTriedAgain: dark first images of a network are no reason to give it up. One whose layout is wrong is opened again and
// again, with growing pauses, and costs the other camera nothing.
func TestAContradictionIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		wrong := &predict.Contradiction{Model: "a.onnx", Images: 30, Reason: "scores over 1"}
		var healthy atomic.Bool
		s.reopen = func(context.Context, *Device) (predict.Predictor, error) {
			s.opened.Add(1)
			next := new(scripted)
			if !healthy.Load() {
				next.contradiction.Store(wrong)
			}
			return next, nil
		}
		s.networks[0].contradiction.Store(wrong)
		frames := s.wait(10 * time.Minute)
		require.Zero(t, frames[0])
		require.InDelta(t, 6000, frames[1], 600)
		require.InDelta(t, 16, s.opened.Load(), 8, "pauses grow to a minute")
		require.Contains(t, s.lastError(), "network failed, opened again at ")
		require.Contains(t, s.lastError(), "model a.onnx")
		healthy.Store(true)
		s.wait(2 * time.Minute)
		frames = s.wait(time.Minute)
		require.InDelta(t, 600, frames[0], 60)
		require.Empty(t, s.lastError())
		s.stop()
		require.NoError(t, <-s.outcome)
	})
}

// TestAHangingNetworkIsOpenedAgain: in a new engine. The third request that never returns makes the program ask for a restart, not sooner
// than ten minutes after the start.
func TestAHangingNetworkIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		var restarts atomic.Int32
		s.Restart = func() { restarts.Add(1) }
		hang := make(chan struct{})
		var last *scripted
		s.reopen = func(context.Context, *Device) (predict.Predictor, error) {
			s.opened.Add(1)
			last = &scripted{}
			return last, nil
		}
		s.wait(time.Minute)
		s.networks[0].hang.Store(&hang)
		s.wait(10500 * time.Millisecond) // the shortest pause ends after 10.75 s
		require.Contains(t, s.lastError(), "network failed, opened again at ")
		require.Contains(t, s.lastError(), "the network hangs: a request has not returned for 10s")
		require.True(t, s.Totals()[0].NetworkFailed)
		s.wait(5 * time.Second)
		frames := s.wait(time.Minute)
		require.InDelta(t, 600, frames[0], 60)
		require.InDelta(t, 600, frames[1], 60)
		require.EqualValues(t, 1, s.abandonedCalls())

		for range 2 {
			last.hang.Store(&hang)
			s.wait(30 * time.Second)
		}
		require.EqualValues(t, 3, s.abandonedCalls())
		require.Contains(t, s.lastError(), "network failed, the program restarts at ")
		require.EqualValues(t, 2, s.opened.Load(), "no fourth engine")
		require.Zero(t, restarts.Load())
		frames = s.wait(10 * time.Minute)
		require.InDelta(t, 6000, frames[1], 600)
		require.EqualValues(t, 1, restarts.Load())
		close(hang)
		s.stop()
		require.NoError(t, <-s.outcome)
		synctest.Wait()
		require.Zero(t, s.abandonedCalls())
	})
}

// TestASecondaryNetworkThatIsStuckNeedsANewProcess: ten minutes after the start, and only if its requests have not returned by then.
func TestASecondaryNetworkThatIsStuckNeedsANewProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stuck atomic.Bool
		var restarts atomic.Int32
		s := startWith(t, func(s *trial) {
			s.Restart = func() { restarts.Add(1) }
			s.SecondaryStuck = func() error {
				if stuck.Load() {
					return errors.New("3 requests have not returned")
				}
				return nil
			}
		})
		begun := time.Now()
		stuck.Store(true)
		s.wait(9 * time.Minute)
		require.Equal(t, 10*time.Minute, s.HangRestart().Sub(begun))
		stuck.Store(false)
		s.wait(time.Hour)
		require.Zero(t, restarts.Load(), "they have returned before")
		stuck.Store(true)
		frames := s.wait(time.Minute)
		require.EqualValues(t, 1, restarts.Load())
		require.InDelta(t, 600, frames[0], 60)
		s.stop()
		require.NoError(t, <-s.outcome)
	})
}

// TestALostContextNeedsANewProcess: another predictor would fail, too. The other network, of another device, goes on until the restart,
// which comes half a minute after the start at the earliest.
func TestALostContextNeedsANewProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		var restarts atomic.Int32
		s.Restart = func() { restarts.Add(1) }
		s.reopen = func(context.Context, *Device) (predict.Predictor, error) {
			s.opened.Add(1)
			return nil, &engine.Error{Op: "open", Kind: engine.ErrContextLost, Message: "illegal address"}
		}
		s.wait(time.Second)
		s.networks[0].failing.Store(true)
		s.wait(20 * time.Second)
		require.Zero(t, restarts.Load())
		require.Contains(t, s.lastError(), "network failed, the program restarts at ")
		require.Contains(t, s.lastError(), "illegal address")
		require.EqualValues(t, 1, s.opened.Load(), "each attempt would fail")
		frames := s.wait(20 * time.Second)
		require.InDelta(t, 200, frames[1], 20)
		require.EqualValues(t, 1, restarts.Load())
		s.stop()
		require.NoError(t, <-s.outcome)
	})
}

// TestAnOpeningThatHangsIsReported: the camera's state says since when; it is used when it returns at last, and does not keep the run from
// ending.
func TestAnOpeningThatHangsIsReported(t *testing.T) {
	for _, returns := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t)
			open := make(chan struct{})
			s.reopen = func(context.Context, *Device) (predict.Predictor, error) {
				<-open
				return new(scripted), nil
			}
			s.networks[0].failing.Store(true)
			s.wait(time.Minute)
			require.Contains(t, s.lastError(), "network failed, being opened since ")
			if returns {
				close(open)
				s.wait(time.Second)
				frames := s.wait(time.Minute)
				require.InDelta(t, 600, frames[0], 60)
			}
			s.stop()
			begun := time.Now()
			require.NoError(t, <-s.outcome)
			require.Less(t, time.Since(begun), 4*time.Second)
			if !returns {
				close(open)
			}
		})
	}
}

// TestTheRunEndsWhenNoNetworkRecovers: a new process may do better where opening every network again has failed too.
func TestTheRunEndsWhenNoNetworkRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.wait(time.Second)
		s.refuse.Store(true)
		s.networks[0].failing.Store(true)
		s.wait(time.Minute)
		require.Empty(t, s.outcome)
		s.networks[1].failing.Store(true)
		s.wait(time.Minute)
		require.ErrorIs(t, <-s.outcome, errRefused)
		s.stop()
	})
}

// lastError returns why the newest frame of camera "a" gave no result.
func (s *trial) lastError() string { return s.Totals()[0].Error }
