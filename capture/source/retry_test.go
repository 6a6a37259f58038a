package source

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/internal/backoff"
)

// quick is a backoff for tests.
var quick = backoff.Exponential{Min: time.Millisecond, Max: 20 * time.Millisecond}

// TestEveryKindIsRetried: nothing that can be wrong with a camera at its first start ends it.
func TestEveryKindIsRetried(t *testing.T) {
	dir := t.TempDir()
	for uri, want := range map[string]string{
		"/dev/video99":        "no such camera (" + deviceHint(Devices()) + ")",
		dir + "/none.mp4":     "no such file",
		dir:                   "no image in this directory (known: .jpg .jpeg .png .bmp .webp .tif .tiff .pgm .ppm)",
		"gst:nosuchelement":   `no element "nosuchelement" (try the pipeline with gst-launch-1.0, with fakesink in place of the appsink)`,
		"rtsp://127.0.0.1:1/": "connection refused (check the address and that the camera is on)",
		"http://u:secret@127.0.0.1:1/?token=secret": "connection refused (check the address and that the camera is on)",
	} {
		t.Run(uri, func(t *testing.T) {
			var log strings.Builder
			c := watch(t, &capture.Camera{Open: Open, Name: "camera", URI: uri, Retry: quick, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			found := c.waitForChange("of the fourth try", func(s capture.Stats) bool { return s.State == capture.Waiting && s.Tries == 4 })
			assert.Equal(t, want, found.Reason)
			assert.Equal(t, uint64(3), found.Reconnects)
			require.NoError(t, c.Close())
			assert.Equal(t, 1, strings.Count(log.String(), "camera unavailable"), log.String())
			assert.NotContains(t, log.String(), "secret")
			assert.Equal(t, capture.Ended, c.Stats().State)
		})
	}
}

// TestServerRecovers: a camera that answers with a page while it starts, or closes the connection, is no less a camera afterwards.
func TestServerRecovers(t *testing.T) {
	good := newMJPEGServer(t, true)
	for name, wrong := range map[string]http.HandlerFunc{
		"page": func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>starting") },
		"closed": func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := w.(http.Hijacker).Hijack()
			require.NoError(t, err)
			_ = connection.Close()
		},
		"empty stream": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if asked.Add(1) == 1 {
					wrong(w, r)
					return
				}
				r.SetBasicAuth("camera", "secret")
				good.ServeHTTP(w, r)
			}))
			t.Cleanup(server.Close)
			c := watch(t, &capture.Camera{Open: Open, URI: server.URL, Retry: quick})
			c.last = append(c.last, server.CloseClientConnections)
			c.waitForChange("that it waits", state(capture.Waiting))
			c.waitForChange("that it runs", state(capture.Running))
			c.moves(5)
		})
	}
}

// TestSlowSource: a source that needs longer for its first image than it was given gets longer.
func TestSlowSource(t *testing.T) {
	t.Parallel()
	c := watch(t, &capture.Camera{
		Open: Open,
		URI: "gst:videotestsrc is-live=true ! video/x-raw,width=64,height=48 ! identity sleep-time=1500000 ! videoconvert ! " +
			"video/x-raw,format=BGR",
		OpenTimeout: 500 * time.Millisecond, Retry: quick,
	})
	stalled := c.waitForChange("that it waits", func(s capture.Stats) bool { return s.State == capture.Waiting && s.Tries == 1 })
	assert.Equal(t, "no first image for 500ms", stalled.Reason)
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(1)
}

// TestManyDemos: what this process draws itself is not given up because drawing takes long.
func TestManyDemos(t *testing.T) {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 16 {
		c := &capture.Camera{
			Open: Open, URI: fmt.Sprintf("demo?width=64&height=64&seed=%d", i), OpenTimeout: time.Nanosecond, StallTimeout: time.Nanosecond,
		}
		notify := make(chan struct{}, 1)
		c.Notify = token(notify)
		all.Go(func() {
			assert.NoError(t, c.Run(ctx))
			assert.NoError(t, c.Close())
			assert.Zero(t, c.Stats().Reconnects)
		})
		select {
		case <-notify:
		case <-time.After(patience):
			require.Fail(t, "no image", "%+v", c.Stats())
		}
		assert.Equal(t, capture.Running, c.Stats().State)
	}
}

// TestHungCaptures: as many captures as are allowed hang, here in opening a pipe that nobody writes to, and the state says so; when they
// come back, so does the camera.
func TestHungCaptures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, pipe := filepath.Join(dir, "video.mp4"), filepath.Join(dir, "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Link(pipe, path))
	video := barcodeVideo(t, "v.mp4", 10, 160, 120, 30)
	c := watch(t, &capture.Camera{Open: Open, URI: "file://" + path + "?loop=1&fps=200", OpenTimeout: 50 * time.Millisecond, Retry: quick})
	assert.Equal(t, "no first image for 50ms", c.waitForChange("that it stalls", state(capture.Stalled)).Reason)
	hung := c.waitForChange("that it hangs", state(capture.Hung))
	assert.Equal(t, "8 captures hang in a decoder or driver (restart the program if this lasts)", hung.Reason)
	assert.Equal(t, uint64(8), hung.Abandoned)
	require.NoError(t, os.Rename(video, path))
	writer, err := os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	c.waitForChange("that it goes on", state(capture.Connecting))
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(30)
}
