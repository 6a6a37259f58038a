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

// observed is an engine that checks whether others of its kind are at work at the same time.
type observed struct {
	*slowEngine
	here     atomic.Int32
	all      []*observed
	together *atomic.Bool // two of them were at work at the same time
}

func (e *observed) Submit(slot int, images []engine.Image) error {
	e.here.Add(1)
	for _, other := range e.all {
		if other != e && other.here.Load() > 0 {
			e.together.Store(true)
		}
	}
	return e.slowEngine.Submit(slot, images)
}

func (e *observed) Wait(slot int) (*engine.Result, error) {
	defer e.here.Add(-1)
	return e.slowEngine.Wait(slot)
}

// load is a frame loop of a test: how long a request takes, the time between two frames (0 for no frame at all), and the camera's priority.
type load struct {
	took, frames time.Duration
	priority     int
}

// loopsOf runs one loop for each load on one device for some seconds, and returns the share of that time in which each network worked. The
// device of the test computes as many requests at a time as there are.
func loopsOf(t *testing.T, seconds int, loads []load) (worked []float64, together bool) {
	begun := time.Now()
	device := &SharedDevice{clock: func() int64 { return int64(time.Since(begun)) }}
	engines := make([]*observed, len(loads))
	seen := make([]record, len(loads))
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	var feeding, running sync.WaitGroup
	var stop, overlap atomic.Bool
	for i, l := range loads {
		engines[i] = &observed{slowEngine: newSlowEngine(l.took, 1), together: &overlap}
	}
	for i, e := range engines {
		e.all = engines
		notify := make(signal, 1)
		source := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
		defer source.pool.Close()
		p := &Pipeline{
			Predictor: predictor(t, e), Sinks: []Sink{&seen[i]}, Wakeup: notify, Confidence: 0.25, MinScore: 0.1, DeviceShare: device.Join(),
			Cameras: []Camera{{Name: "a", Source: source, Scheduling: Scheduling{Priority: loads[i].priority}}},
		}
		require.NoError(t, p.Open())
		feeding.Go(func() {
			for loads[i].frames > 0 && !stop.Load() {
				source.put(t)
				time.Sleep(loads[i].frames)
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
		worked = append(worked, (time.Duration(n)*loads[i].took).Seconds()/float64(seconds))
	}
	return worked, overlap.Load()
}

// TestNetworksDoNotWaitForEachOther: requests of different networks are in flight at the same time, however long one of them takes.
// Only a loop that is ahead of what its priority gives it is held back: on this device, which slows nobody down, a loop of priority 1
// beside one of priority 3 works half of the time, because half of (1/2) + (1/2 + 1/2 x 1/2) is the quarter that it is due.
func TestNetworksDoNotWaitForEachOther(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		loads []load
		want  []float64
	}{
		"alike":                {[]load{{10 * ms, ms, 1}, {10 * ms, ms, 1}}, []float64{1, 1}},
		"slow, fast":           {[]load{{500 * ms, ms, 1}, {5 * ms, ms, 1}}, []float64{1, 1}},
		"slow, seldom":         {[]load{{500 * ms, ms, 1}, {10 * ms, 100 * ms, 1}}, []float64{1, 0.1}},
		"priority":             {[]load{{10 * ms, ms, 1}, {5 * ms, ms, 3}}, []float64{0.5, 1}},
		"priority, seldom":     {[]load{{10 * ms, ms, 1}, {5 * ms, 100 * ms, 3}}, []float64{1, 0.05}},
		"does not return":      {[]load{{41 * time.Second, ms, 1}, {5 * ms, ms, 1}}, []float64{1, 1}},
		"important, no return": {[]load{{41 * time.Second, ms, 9}, {5 * ms, ms, 1}}, []float64{1, 0.79}}, // held back for the first ten seconds
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				worked, together := loopsOf(t, 40, c.loads)
				require.InDeltaSlice(t, c.want, worked, 0.05)
				require.Equal(t, len(c.loads) > 1, together)
			})
		})
	}
}

// TestALoopThatWantedNothingHasSavedNothingUp: one that comes back holds nobody back for as long as it was away.
func TestALoopThatWantedNothingHasSavedNothingUp(t *testing.T) {
	now := int64(0)
	device := &SharedDevice{clock: func() int64 { return now }}
	busy, back := device.Join(), device.Join()
	for _, d := range []*DeviceShare{busy, back} {
		d.notify(make(signal, 1))
	}
	for range 1000 {
		require.True(t, busy.acquire())
		now += int64(time.Second)
	}
	require.True(t, back.acquire())
	for range 100 {
		now += int64(time.Millisecond)
		require.False(t, busy.wanted())
		require.True(t, busy.acquire())
		require.True(t, back.acquire())
	}
	busy.release()
	back.release()
}
