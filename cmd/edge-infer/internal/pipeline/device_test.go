package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// alone is an engine that shares its device with others and is never at work beside them.
type alone struct {
	*slowEngine
	t    *testing.T
	here atomic.Int32
	all  []*alone
}

func (e *alone) Submit(slot int, images []engine.Image) error {
	e.here.Add(1)
	for _, other := range e.all {
		if other != e && other.here.Load() > 0 {
			e.t.Error("two loops are at work at a time")
		}
	}
	return e.slowEngine.Submit(slot, images)
}

func (e *alone) Wait(slot int) (*engine.Result, error) {
	defer e.here.Add(-1)
	return e.slowEngine.Wait(slot)
}

// loopsOf runs one loop for each engine on one device for some seconds. Each has one camera, which always has a frame unless it is idle,
// and gives the time that each network worked.
func loopsOf(t *testing.T, seconds int, took, frames []time.Duration, priorities []int) (worked []time.Duration) {
	begun := time.Now()
	turns := &SharedDevice{clock: func() int64 { return int64(time.Since(begun)) }}
	engines := make([]*alone, len(took))
	seen := make([]record, len(took))
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	var feeding, running sync.WaitGroup
	var stop atomic.Bool
	for i := range engines {
		engines[i] = &alone{slowEngine: newSlowEngine(took[i], 1), t: t}
	}
	for i, e := range engines {
		e.all = engines
		notify := make(signal, 1)
		source := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
		defer source.pool.Close()
		p := &Pipeline{
			Predictor: predictor(t, e), Sinks: []Sink{&seen[i]}, Wakeup: notify, Confidence: 0.25, MinScore: 0.1, DeviceShare: turns.Join(),
			Cameras: []Camera{{Name: "a", Source: source, Scheduling: Scheduling{Priority: priorities[i]}}},
		}
		require.NoError(t, p.Open())
		feeding.Go(func() {
			for frames[i] > 0 && !stop.Load() {
				source.put(t)
				time.Sleep(frames[i])
			}
		})
		running.Go(func() {
			if err := p.Run(ctx, nil); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	stop.Store(true)
	feeding.Wait()
	for i := range seen {
		n := 0
		for _, seqs := range seen[i].seqs {
			n += len(seqs)
		}
		worked = append(worked, time.Duration(n)*took[i])
	}
	return worked
}

// TestLoopsOfADeviceKeepTheirShares: a slow network does not starve a fast one, nor the other way round; what one leaves the others use.
func TestLoopsOfADeviceKeepTheirShares(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		took, frames []time.Duration
		priorities   []int
		want         []float64 // shares of the time
	}{
		"alike":      {[]time.Duration{10 * ms, 10 * ms}, []time.Duration{ms, ms}, []int{1, 1}, []float64{0.5, 0.5}},
		"slow, fast": {[]time.Duration{40 * ms, 5 * ms}, []time.Duration{ms, ms}, []int{1, 1}, []float64{0.5, 0.5}},
		"priority":   {[]time.Duration{10 * ms, 5 * ms}, []time.Duration{ms, ms}, []int{1, 3}, []float64{0.25, 0.75}},
		"seldom":     {[]time.Duration{10 * ms, 10 * ms}, []time.Duration{ms, 100 * ms}, []int{1, 1}, []float64{0.9, 0.1}},
		"three, one idle": {
			[]time.Duration{20 * ms, 3 * ms, 5 * ms}, []time.Duration{ms, ms, 0}, []int{1, 1, 1}, []float64{0.5, 0.5, 0},
		},
		"one": {[]time.Duration{3 * ms}, []time.Duration{ms}, []int{1}, []float64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worked := loopsOf(t, 4, c.took, c.frames, c.priorities)
				for i, want := range c.want {
					require.InDelta(t, want, worked[i].Seconds()/4, 0.05, "%v", worked)
				}
			})
		})
	}
}

// TestALoopThatWantedNothingHasSavedNothingUp: one that comes back is not served alone for as long as it was away.
func TestALoopThatWantedNothingHasSavedNothingUp(t *testing.T) {
	now := int64(0)
	turns := &SharedDevice{clock: func() int64 { return now }}
	busy, back := turns.Join(), turns.Join()
	signals := map[*DeviceShare]signal{busy: make(signal, 1), back: make(signal, 1)}
	busy.notify(signals[busy])
	back.notify(signals[back])
	for range 1000 {
		require.True(t, busy.acquire())
		now += 10
	}
	require.False(t, back.acquire())
	served := map[*DeviceShare]int{}
	at := busy
	for range 100 {
		now += 10
		served[at]++
		other := busy
		if at == busy {
			other = back
		}
		if !at.wanted() {
			require.True(t, at.acquire())
			continue
		}
		at.release()
		require.False(t, at.acquire())
		require.Len(t, signals[other], 1)
		signals[other].Wait()
		require.True(t, other.acquire())
		at = other
	}
	require.InDelta(t, 50, served[back], 2)
	busy.release()
	back.release()
	require.False(t, busy.wanted())
}
