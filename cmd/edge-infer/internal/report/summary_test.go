package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

func TestSummary(t *testing.T) {
	var out strings.Builder
	s := Summary{Elapsed: 30049 * time.Millisecond, Messages: &Messages{Events: 12, Delivered: 900, Dropped: 1, Waiting: 2}}
	s.Cameras = []CameraSummary{
		{
			CameraStats: pipeline.CameraStats{
				Camera: "gate", Inferred: 800, FPS: 26.66, DroppedError: 2, Detections: 40, P50: 12340 * time.Microsecond, P99: 20 * time.Millisecond,
			},
			DroppedNewer: 5, Damaged: 1,
		},
		{CameraStats: pipeline.CameraStats{Camera: "yard", DroppedMotion: 70, DroppedDeadline: 3}},
	}
	require.NoError(t, s.Print(&out))
	require.Equal(t, "ran 30s\n"+
		"gate: 800 frames, 26.7 fps, dropped 5 (newer) 3 (error); latency p50 12.3 ms p99 20.0 ms; 40 detections\n"+
		"yard: 0 frames, 0.0 fps, dropped 0 (newer) 0 (error) 70 (motion) 3 (deadline); 0 detections\n"+
		"mqtt: 12 events, 900 messages delivered, 1 dropped, 2 waiting\n", out.String())
}
