//go:build !race

package main

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/mqtt"
)

// The race detector allocates on its own, so make test runs this once without it.
//
// From the frame's lease through the network, decoding, tracking and counting to the message in the client's hands, nothing of ours allocates
// once everything has been seen. What is left is the runtime's: now and then it makes a new record for a goroutine that waits for a channel.
func TestNoAllocationsPerFrame(t *testing.T) {
	const warm, measured = 200, 2000
	c := config.Default()
	options, err := modelOptions(c, 1, 0.1)
	require.NoError(t, err)
	options.Threads = 1
	c.Engine.Backend = "onnxruntime"
	e, err := openEngine(t.Context(), c, options, slog.New(slog.DiscardHandler), t.Output())
	require.NoError(t, err)
	defer e.Close()
	detector, err := openDetector(c, e.Model(), 0.1)
	require.NoError(t, err)
	pictures, err := (&bench{ring: 1, width: 320, height: 240}).draw(e)
	require.NoError(t, err)
	client := &mqtt.Client{Device: "gate", Brokers: []string{"tcp://127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, client.Open())
	defer client.Close()
	follower := &pipeline.Follower{Labels: e.Model().Metadata.Labels, Confidence: 0.25}
	follower.Config.Objects.StationaryAfter = time.Hour // events may allocate, and would come while this measures
	require.NoError(t, follower.Open())

	var before, after runtime.MemStats
	ended, detections := make(chan struct{}), 0
	count := 0
	watch := sinkFunc(func(in *pipeline.Inferred) {
		detections += len(in.Detections)
		switch count++; count {
		case warm:
			runtime.ReadMemStats(&before)
		case warm + measured:
			runtime.ReadMemStats(&after)
			close(ended)
		}
	})
	source := &memoryCamera{pictures: pictures, width: 320, height: 240}
	p := &pipeline.Pipeline{
		Engine: e, Decoder: detector, Labels: e.Model().Metadata.Labels, Confidence: 0.25, LowestScore: 0.1, Logger: slog.New(slog.DiscardHandler),
		Cameras: []pipeline.Camera{{Name: "cam0", Source: untilClosed{source, ended}, Lossless: true, Follower: follower}},
		Sinks:   []pipeline.Sink{&publisher{client: client}, watch},
	}
	require.NoError(t, p.Open())
	require.NoError(t, p.Run(t.Context(), ended))
	require.Positive(t, detections)
	perFrame := float64(after.Mallocs-before.Mallocs) / measured
	t.Logf("%.4f allocations a frame", perFrame)
	require.LessOrEqual(t, perFrame, 0.1)
}

type sinkFunc func(*pipeline.Inferred)

func (f sinkFunc) Frame(in *pipeline.Inferred) { f(in) }

// untilClosed is a camera that has no more frames once the channel is closed.
type untilClosed struct {
	*memoryCamera
	ended <-chan struct{}
}

func (u untilClosed) Take() (capture.Frame, bool) {
	select {
	case <-u.ended:
		return capture.Frame{}, false
	default:
		return u.memoryCamera.Take()
	}
}
