package source

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// encodedVideo makes a video of 20 seconds.
func encodedVideo(t testing.TB, encoder string, s size) string {
	path := filepath.Join(t.TempDir(), "video.ts")
	command := exec.Command(testtool.Program(t, "ffmpeg"), "-v", "error", "-f", "lavfi", "-i", "testsrc2=rate=25:size="+s.String(),
		"-frames:v", "500", "-c:v", encoder, "-preset", "ultrafast", "-g", "10", "-bf", "0",
		"-x265-params", "log-level=none", "-pix_fmt", "yuv420p", path)
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	return path
}

// TestCodecChanges: a camera whose codec or password was changed, which ends its connections, goes on as soon as it is right again.
func TestCodecChanges(t *testing.T) {
	t.Parallel()
	server := newRTSPServer(t)
	server.login = []string{"digest", "admin", "first"}
	server.show(server.video)
	at := "@127.0.0.1:" + server.port + "/0"
	c := watch(t, &capture.Camera{Open: Open, URI: "rtsp://admin:first" + at, Retry: quick, DeniedRetry: locking})
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(5)
	server.show(encodedVideo(t, "libx265", large))
	c.waitForChange("that it runs again", func(s capture.Stats) bool { return s.State == capture.Running && s.Width == large.width })
	c.moves(5)

	server.login[2] = "second"
	server.show(server.video)
	c.waitForChange("that it is denied", func(s capture.Stats) bool {
		return s.State == capture.Waiting && strings.HasPrefix(s.Reason, "the camera refused user name or password")
	})
	c = watch(t, &capture.Camera{Open: Open, URI: "rtsp://admin:second" + at, Retry: quick, DeniedRetry: locking})
	c.waitForChange("that it runs with the new password", state(capture.Running))
	c.moves(5)
}

// TestSizeChangesWithinASession: frames go on over the same connection. OpenCV scales them to the first size; other decoders do not.
func TestSizeChangesWithinASession(t *testing.T) {
	t.Parallel()
	server := &rtsptest.Server{
		Files: []string{encodedVideo(t, "libx264", small)}, Second: encodedVideo(t, "libx264", large), SecondAfter: 2 * time.Second,
	}
	begin := time.Now()
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	c := watch(t, &capture.Camera{Open: Open, URI: server.URL(0), Retry: quick})
	c.waitForChange("that it runs", state(capture.Running))
	time.Sleep(time.Until(begin.Add(2 * server.SecondAfter))) // the second file plays for sure
	c.moves(30)
	assert.Equal(t, 1, server.Stats(0).Connections)
	assert.Zero(t, c.Stats().Reconnects)
}

// TestCodecChangesWithinASession: a camera that sends another codec than it has described, without ending the connection, is opened again.
func TestCodecChangesWithinASession(t *testing.T) {
	t.Parallel()
	servers := make([]*rtsptest.Server, 2)
	for i, encoder := range []string{"libx264", "libx265"} {
		servers[i] = &rtsptest.Server{Files: []string{encodedVideo(t, encoder, []size{small, large}[i])}}
		require.NoError(t, servers[i].Start())
		t.Cleanup(servers[i].Close)
	}
	var changed atomic.Bool
	change := make(chan struct{})
	r := &rtsptest.Raw{SDP: describedAs("H264", "a=fmtp:96 packetization-mode=1\r\n")}
	r.Play = func(send func(packet *rtp.Packet) error) {
		if !changed.Load() {
			forward(t, servers[0].URL(0), send, change)
		}
		forward(t, servers[1].URL(0), send, t.Context().Done())
	}
	require.NoError(t, r.Start())
	t.Cleanup(r.Close)
	c := watch(t, &capture.Camera{Open: Open, URI: r.URL(), Retry: quick, StallTimeout: 2 * time.Second})
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(5)
	r.SetSDP(describedAs("H265", ""))
	changed.Store(true)
	close(change)
	c.waitForChange("that it runs again", func(s capture.Stats) bool { return s.State == capture.Running && s.Width == large.width })
	c.moves(5)
}
