package source

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/internal/backoff"
)

// stand is the other end of a camera in a test. It begins absent.
type stand struct {
	uri     string
	backend backend
	show    func(s size) // is there, with images of that size
	silence func()       // gives no image, but stays connected, as a server that was sent SIGSTOP; nil where that cannot be
	kill    func()       // is gone
}

var (
	small = size{160, 120}
	large = size{320, 240}
)

// stands are the kinds of sources that can come and go.
func stands() map[string]func(t *testing.T) *stand {
	return map[string]func(t *testing.T) *stand{
		"rtsp with ffmpeg":    func(t *testing.T) *stand { return rtspStand(t, byFFmpeg) },
		"rtsp with gstreamer": func(t *testing.T) *stand { return rtspStand(t, byGStreamer) },
		"http":                func(t *testing.T) *stand { return httpStand(t, true) },
		"http without length": func(t *testing.T) *stand { return httpStand(t, false) },
		"pipeline":            pipelineStand,
		"video":               videoStand,
		"directory":           directoryStand,
	}
}

func rtspStand(t *testing.T, backend backend) *stand {
	server := newRTSPServer(t)
	server.kill()
	videos := map[size]string{
		small: barcodeVideo(t, "small.ts", 1500, small.width, small.height, 50),
		large: barcodeVideo(t, "large.ts", 1500, large.width, large.height, 50),
	}
	return &stand{
		uri: server.uri(), backend: backend, kill: server.kill, silence: server.stop,
		show: func(s size) { server.show(videos[s]) },
	}
}

func httpStand(t *testing.T, length bool) *stand {
	server := newMJPEGServer(t, length)
	server.kill()
	return &stand{
		uri: server.uri(), kill: server.kill, silence: func() { server.silent.Store(true) },
		show: func(s size) {
			server.kill()
			server.silent.Store(false)
			server.size.Store(&s)
			server.start()
		},
	}
}

// partServer sends multipart JPEG over TCP, without HTTP.
type partServer struct {
	t        *testing.T
	address  string
	listener net.Listener
	quit     chan struct{}
	silent   chan struct{}
	all      sync.WaitGroup
}

func (s *partServer) start(images size) {
	listener, err := net.Listen("tcp", s.address)
	require.NoError(s.t, err)
	s.address, s.listener = listener.Addr().String(), listener
	s.quit, s.silent = make(chan struct{}), make(chan struct{})
	s.all.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			s.all.Go(func() { s.serve(connection, images) })
		}
	})
}

func (s *partServer) serve(connection net.Conn, images size) {
	defer connection.Close()
	for number := 0; ; number++ {
		select {
		case <-s.quit:
			return
		case <-s.silent:
			<-s.quit
			return
		case <-time.After(5 * time.Millisecond):
		}
		data := barcodeJPEG(s.t, number, images.width, images.height)
		const part = "--frame\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n%s\r\n"
		if _, err := fmt.Fprintf(connection, part, len(data), data); err != nil {
			return
		}
	}
}

func (s *partServer) kill() {
	if s.listener == nil {
		return
	}
	_ = s.listener.Close()
	close(s.quit)
	s.all.Wait()
	s.listener = nil
}

func pipelineStand(t *testing.T) *stand {
	server := &partServer{t: t, address: "127.0.0.1:0"}
	server.start(small)
	server.kill()
	t.Cleanup(server.kill)
	host, port, err := net.SplitHostPort(server.address)
	require.NoError(t, err)
	return &stand{
		uri: "gst:tcpclientsrc host=" + host + " port=" + port + " ! multipartdemux boundary=frame ! jpegdec ! videoconvert ! " +
			"video/x-raw,format=BGR ! appsink sync=false",
		kill: server.kill, silence: func() { close(server.silent) },
		show: func(s size) {
			server.kill()
			server.start(s)
		},
	}
}

// videoStand is a video that is played again and again: it is noticed at its end that the file is gone.
func videoStand(t *testing.T) *stand {
	path := filepath.Join(t.TempDir(), "video.mp4")
	return &stand{
		uri:  "file://" + path + "?loop=1&fps=200",
		show: func(s size) { require.NoError(t, os.Rename(barcodeVideo(t, "v.mp4", 10, s.width, s.height, 30), path)) },
		kill: func() { _ = os.Remove(path) },
	}
}

func directoryStand(t *testing.T) *stand {
	dir := filepath.Join(t.TempDir(), "images")
	return &stand{
		uri: "file://" + dir + "?loop=1&fps=200",
		show: func(s size) {
			fresh := dir + ".new"
			require.NoError(t, os.Mkdir(fresh, 0o700))
			for i := range 10 {
				require.NoError(t, os.WriteFile(fmt.Sprintf("%s/%d.jpg", fresh, i), barcodeJPEG(t, i, s.width, s.height), 0o600))
			}
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Rename(fresh, dir))
		},
		kill: func() { require.NoError(t, os.RemoveAll(dir)) },
	}
}

// TestContract: a camera of any kind may be absent when it is started, come, go, come back with images of another size, and fall silent.
// Its state says so each time, and it goes on each time.
func TestContract(t *testing.T) {
	for name, open := range stands() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkContract(t, open(t))
		})
	}
}

func checkContract(t *testing.T, s *stand) {
	c := watch(t, &capture.Camera{
		Open: opener(s.backend),
		Name: "camera", URI: s.uri, Lossless: !strings.HasPrefix(s.uri, "file"), StallTimeout: 2 * time.Second,
		Retry: backoff.Exponential{Min: 50 * time.Millisecond, Max: 200 * time.Millisecond},
	})
	c.last = append(c.last, s.kill) // what hangs comes back
	c.waitForChange("that it waits", func(s capture.Stats) bool { return s.State == capture.Waiting && s.Tries == 2 })

	s.show(small)
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(30)
	c.shows(small)

	s.kill()
	c.waitForChange("that it is lost", state(capture.Lost))
	c.waitForChange("that it waits", state(capture.Waiting))
	taken := c.seen()

	s.show(large)
	c.waitForChange("that it runs again", func(s capture.Stats) bool {
		return s.State == capture.Running && s.Width == large.width && s.Height == large.height
	})
	c.moves(30)
	c.shows(large)
	assert.Greater(t, c.seen(), taken)
	assert.Positive(t, c.Stats().Reconnects)
	if s.silence == nil {
		return
	}

	s.silence()
	c.waitForChange("that it is silent", func(s capture.Stats) bool {
		return s.Reason == "no image for 2s" && (s.State == capture.Stalled || s.State == capture.Lost)
	})
	s.kill()
	s.show(small)
	c.waitForChange("that it runs again", func(s capture.Stats) bool { return s.State == capture.Running && s.Width == small.width })
	c.moves(30)
	c.shows(small)
	s.silence() // the camera is closed while its source hangs
}

// shows asks that the frames have that size.
func (w *watched) shows(want size) {
	w.t.Helper()
	stats := w.Stats()
	assert.Equal(w.t, want, size{stats.Width, stats.Height})
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Equal(w.t, want, w.size)
}
