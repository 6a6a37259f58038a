//go:build !race

package bench

import (
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// The race detector allocates on its own, so make test runs this once without it.
//
// From the frame's lease through the network, decoding, tracking and counting to the message in the client's hands, nothing of ours
// allocates once everything has been seen. What is left is the runtime's: now and then it makes a new record for a goroutine that waits for
// a channel.
func TestNoAllocationsPerFrame(t *testing.T) {
	const warm, measured = 200, 2000
	c := config.Default()
	c.Engine.Backend, c.Engine.Threads = "onnxruntime", 1
	n, err := predict.Open(t.Context(), (&Bench{Logger: slog.New(slog.DiscardHandler), Level: -1}).options(c, 1))
	require.NoError(t, err)
	defer n.Close()
	labels := n.Model().Metadata.Labels
	images, err := draw(n, 1, 320, 240)
	require.NoError(t, err)
	client := &mqtt.Client{
		Device: "gate", Link: mqtt.Link{Access: mqtt.Access{Brokers: []string{"tcp://127.0.0.1:1"}}, Logger: slog.New(slog.DiscardHandler)},
	}
	require.NoError(t, client.Open())
	defer client.Close()
	follower := &pipeline.Tracker{Labels: labels, Confidence: 0.25}
	follower.Config.Objects.StationaryAfter = time.Hour // events may allocate, and would come while this measures
	require.NoError(t, follower.Open())

	var before, after runtime.MemStats
	ended, detections := make(chan struct{}), 0
	count := 0
	watch := sinkFunc(func(in *pipeline.Result) {
		detections += len(in.Detections)
		switch count++; count {
		case warm:
			runtime.ReadMemStats(&before)
		case warm + measured:
			runtime.ReadMemStats(&after)
			close(ended)
		}
	})
	source := &memoryCamera{images: images, width: 320, height: 240}
	p := &pipeline.Pipeline{
		Predictor: n, Confidence: 0.25, MinScore: 0.1, Logger: slog.New(slog.DiscardHandler),
		Cameras: []pipeline.Camera{{Name: "cam0", Source: untilClosed{source, ended}, Lossless: true, Tracker: follower}},
		Sinks:   []pipeline.Sink{&sink.Publisher{Client: client}, watch},
	}
	require.NoError(t, p.Open())
	require.NoError(t, p.Run(t.Context(), ended))
	require.Positive(t, detections)
	perFrame := float64(after.Mallocs-before.Mallocs) / measured
	t.Logf("%.4f allocations a frame", perFrame)
	require.LessOrEqual(t, perFrame, 0.1)
}

// untilClosed is a camera that has no more frames once the channel is closed. Its clock goes with the frames: on a busy machine a pause
// between two of them would end tracks, which is an event.
type untilClosed struct {
	*memoryCamera
	ended <-chan struct{}
}

func (u untilClosed) Take() (capture.Frame, bool) {
	select {
	case <-u.ended:
		return capture.Frame{}, false
	default:
		frame, taken := u.memoryCamera.Take()
		frame.Time = time.Unix(0, int64(frame.Seq)*int64(time.Second/30))
		return frame, taken
	}
}
