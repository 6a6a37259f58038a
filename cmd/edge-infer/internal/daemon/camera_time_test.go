package daemon

import (
	"encoding/json"
	"net/http"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestCameraTimeToMessage: the latency from the time of an RTSP camera's clock to the message is in the metrics, and where its time comes
// from in the status. A camera without a clock has no such latency.
func TestCameraTimeToMessage(t *testing.T) {
	t.Parallel()
	camera := &rtsptest.Server{Files: []string{beltVideo(t)}}
	require.NoError(t, camera.Start())
	defer camera.Close()
	for uri, known := range map[string]bool{camera.URL(0): true, "demo?width=320&height=240&fps=10": false} {
		p := programtest.Start(t, "--model", "demo", "--camera", uri, "--mqtt-listen", "127.0.0.1:0", "--web", "127.0.0.1:0")
		page := p.PrintedAfter("web page at ")
		get := func(path string) string {
			code, text := programtest.Get(t, programtest.Visitor(t), page+path)
			require.Equal(t, http.StatusOK, code)
			return string(text)
		}
		ready := regexp.MustCompile(`edge_infer_stage_seconds_count\{stage="hand_off"\} [1-9]`)
		if known { // a busy camera sends its first report late
			ready = regexp.MustCompile(`edge_infer_stage_seconds_count\{stage="camera_to_message"\} [1-9]`)
		}
		require.Eventually(t, func() bool { return ready.MatchString(get("metrics")) }, programtest.Patience, 100*time.Millisecond)
		var status struct {
			Cameras []struct {
				Capture struct {
					Time bool `json:"camera_time"`
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(get("api/status")), &status))
		require.Equal(t, known, status.Cameras[0].Capture.Time)
		if !known {
			require.NotContains(t, get("metrics"), "camera_to_message")
		}
		require.NoError(t, p.Stop(syscall.SIGTERM))
	}
}
