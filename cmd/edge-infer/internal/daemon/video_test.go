package daemon

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestLiveVideo: the video of an RTSP camera without clips, in which each image has the time by which its detections are known. The demo
// camera has images only.
func TestLiveVideo(t *testing.T) {
	t.Parallel()
	server := &rtsptest.Server{Files: []string{beltVideo(t)}}
	require.NoError(t, server.Start())
	defer server.Close()
	p := programtest.Start(t, "--camera", "gate="+server.URL(0), "--camera", "belt=demo?width=320&height=240&fps=5", "--mqtt", "off", "--web",
		"127.0.0.1:0", "--model", "demo")
	page := p.PrintedAfter("web page at ")
	conn, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(page, "http")+"api/video?camera=belt&camera=gate", nil)
	require.NoError(t, err)
	defer response.Body.Close()
	defer conn.Close()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(programtest.Patience)))

	detected := make(chan int64, 1000) // when the images with detections of the camera were received, in microseconds
	events, err := programtest.Visitor(t).Get(page + "api/detections")
	require.NoError(t, err)
	defer events.Body.Close()
	go func() {
		for lines := bufio.NewScanner(events.Body); lines.Scan(); {
			var message struct {
				Camera   string
				Captured int64 `json:"captured_us"`
			}
			data, found := strings.CutPrefix(lines.Text(), "data: ")
			if found && json.Unmarshal([]byte(data), &message) == nil && message.Camera == "gate" && message.Captured > 0 {
				select {
				case detected <- message.Captured:
				default:
				}
			}
		}
	}()
	seen := map[int64]int{} // 1 is an image, 2 its detections, 3 both
	described := map[int]string{}
	for matching := 0; matching < 5; {
		kind, data, err := conn.ReadMessage()
		require.NoError(t, err, "%v, %d images", described, len(seen))
		if kind == websocket.TextMessage {
			var d struct {
				Camera int
				Codec  string
			}
			require.NoError(t, json.Unmarshal(data, &d))
			described[d.Camera] = d.Codec
			continue
		}
		require.Equal(t, uint32(1), binary.BigEndian.Uint32(data))
		seen[int64(math.Float64frombits(binary.BigEndian.Uint64(data[12:])))] |= 1
		for len(detected) > 0 {
			seen[<-detected] |= 2
		}
		matching = 0
		for _, parts := range seen {
			matching += parts / 3
		}
	}
	require.Regexp(t, `^avc1\.`, described[1])
	require.Empty(t, described[0])
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
