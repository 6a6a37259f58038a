package daemon

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// held answers a request when it is let, and sees nothing. As a sink it takes a result when it is let.
type held struct{ entered, let chan struct{} }

func (h *held) Model() predict.Model { return predict.Model{Model: engine.Model{MaxBatch: 1}} }

func (h *held) Slots() int { return 1 }

func (h *held) Submit(int, []engine.Image) error { return nil }

func (h *held) Wait(int) (*predict.BatchResult, error) {
	h.entered <- struct{}{}
	<-h.let
	return &predict.BatchResult{Results: make([]predict.Result, 1)}, nil
}

func (h *held) Frame(*pipeline.Result) {
	h.entered <- struct{}{}
	<-h.let
}

// TestALoopThatIsStuckStopsTheWatchdog: the margin of a loop shrinks while it is busy with one thing, and not while it waits for something
// to do or for its network, which it abandons itself.
func TestALoopThatIsStuckStopsTheWatchdog(t *testing.T) {
	notify := new(capture.Wakeup)
	camera := &capture.Camera{
		Name: "a", URI: "demo?width=64&height=64&frames=2&fps=1000", Open: source.Open, Lossless: true, Notify: notify.Signal,
	}
	defer camera.Close()
	predictor := &held{entered: make(chan struct{}), let: make(chan struct{})}
	output := &held{entered: make(chan struct{}), let: make(chan struct{})}
	loop := &pipeline.Pipeline{
		Predictor: predictor, Cameras: []pipeline.Camera{{Name: "a", Source: camera, Lossless: true}}, Confidence: 0.25, MinScore: 0.1,
		Wakeup: notify, Sinks: []pipeline.Sink{output},
	}
	require.NoError(t, loop.Open())
	var pulse pipeline.Heartbeat
	w := watchdog{devices: &device.Set{Devices: device.Devices{All: []*device.Device{{Pipeline: loop}}}}, pulse: &pulse}
	margin := func(right func(time.Duration) bool, why string) {
		require.Eventually(t, func() bool { return right(w.margin()) }, programtest.Patience, time.Millisecond, why)
	}
	whole := func(left time.Duration) bool { return left == stillWindow }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx, nil) }()
	margin(whole, "nothing to do")

	go func() { _ = camera.Run(ctx) }()
	<-predictor.entered
	require.Equal(t, stillWindow, w.margin(), "a request is under way")
	predictor.let <- struct{}{}
	<-output.entered
	margin(func(left time.Duration) bool { return left < stillWindow }, "an output does not return")
	require.True(t, w.alive())
	output.let <- struct{}{}
	<-predictor.entered
	predictor.let <- struct{}{}
	<-output.entered
	output.let <- struct{}{}
	margin(whole, "nothing to do any more")

	pulse.Beat()
	margin(func(left time.Duration) bool { return left < stillWindow }, "the watch over the run is stuck")
	cancel()
	require.NoError(t, <-ended)
}
