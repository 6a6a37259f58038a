package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func TestEveryStageHasItsTime(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	follower := &Tracker{Labels: []string{"a", "b", "c", "d", "e", "f"}, Confidence: 0.25}
	require.NoError(t, follower.Open())
	e := newSlowEngine(0, 1)
	p := open(t, e, notify, []Sink{discard{}}, Camera{Name: "a", Source: camera, Tracker: follower})
	p.Stages = stage.New()
	p.stages = p.Stages
	frame := func() {
		camera.put(t)
		require.True(t, p.gather(&p.requests[0]))
		at := &p.requests[0].frames[0]
		at.Captured = int64(time.Second)
		at.Ready = at.Captured + int64(2*time.Millisecond)
		e.slots[0].result.Timing = engine.Timing{
			Submitted: at.Ready + int64(3*time.Millisecond), Done: at.Ready + int64(20*time.Millisecond),
			Preprocess: int64(4 * time.Millisecond), Inference: int64(5 * time.Millisecond), Filter: int64(time.Millisecond),
		}
		p.submit(0)
		p.finish(0)
	}
	for range 300 { // paths and tracks reach their full size
		frame()
	}
	require.Zero(t, testing.AllocsPerRun(100, frame))
	got := map[stage.Stage]stage.Summary{}
	for _, s := range p.Stages.Totals() {
		require.EqualValues(t, 401, s.Count, s.Stage) // AllocsPerRun runs once more
		got[s.Stage] = s
	}
	require.Len(t, got, 8)
	for s, want := range map[stage.Stage]time.Duration{
		stage.Capture: 2, stage.Queue: 3, stage.Waiting: 7, stage.Letterbox: 4, stage.Network: 5, stage.Filter: 1,
	} {
		require.InEpsilon(t, float64(want*time.Millisecond), float64(got[s].P50), 0.01, s)
	}
	require.Positive(t, got[stage.Decode].Max)
	require.Positive(t, got[stage.Track].Max)
}

// TestTheLoopHasAThreadWhereItWaitsForADevice: not beside a backend that computes in goroutines, until another takes its place.
func TestTheLoopHasAThreadWhereItWaitsForADevice(t *testing.T) {
	entered := 0
	p := &Pipeline{SetupThread: func() func() { entered++; return func() {} }}
	done := make(chan struct{})
	go func() { // the thread ends with it
		defer close(done)
		for _, step := range []struct {
			blocks  bool
			entered int
		}{{false, 0}, {true, 1}, {true, 1}, {false, 1}} {
			p.model.Store(&engine.Model{Backend: "any", BlocksThread: step.blocks})
			p.lockThread()
			assert.Equal(t, step.entered, entered)
		}
	}()
	<-done
}

// TestDetectionsOverTheLimitAreCounted where a reported one was cut off.
func TestDetectionsOverTheLimitAreCounted(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	p := open(t, newSlowEngine(0, 1), notify, []Sink{discard{}}, Camera{Name: "a", Source: camera})
	for _, score := range []float32{0, 0.1, 0.9, p.Confidence} {
		camera.put(t)
		frame, ok := camera.Take()
		require.True(t, ok)
		var seen predict.Result
		seen.Stats.Cut = score
		p.publish((*p.streams.Load())[0], &frame, &seen, engine.Timing{})
		frame.Release()
	}
	total := p.Totals()[0]
	require.EqualValues(t, 4, total.Inferred)
	require.EqualValues(t, 2, total.Cut)
}
