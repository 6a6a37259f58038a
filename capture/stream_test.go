package capture

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

// watched is a camera with a consumer that checks what it gets.
type watched struct {
	*Camera
	t      *testing.T
	notify chan struct{}
	result chan error

	last []func() // run after Close

	mu      sync.Mutex
	taken   uint64
	newest  int // number shown by the newest frame
	nextSeq uint64
	breaks  int // frames whose number does not follow that of the frame before
}

// watch runs a camera until the test ends.
func watch(t *testing.T, c *Camera) *watched {
	w := &watched{Camera: c, t: t, notify: make(chan struct{}, 1), result: make(chan error, 1), newest: -1}
	c.Notify = w.notify
	c.Logger = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithCancel(context.Background())
	finished := make(chan struct{})
	go func() { w.result <- c.Run(ctx) }()
	go func() {
		defer close(finished)
		for {
			select {
			case <-w.notify:
				w.consume()
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		begin := time.Now()
		require.NoError(t, c.Close())
		assert.Less(t, time.Since(begin), 10*time.Second, "closing is bounded")
		require.NoError(t, <-w.result)
		cancel()
		<-finished
		for _, last := range w.last {
			last()
		}
		// Captures that hung come back when their server is gone.
		require.Eventually(t, func() bool { return len(c.hanging) == 0 }, patience, 10*time.Millisecond)
		stats := c.Stats()
		w.mu.Lock()
		defer w.mu.Unlock()
		assert.Equal(t, stats.Captured, w.taken+stats.Displaced, "every frame is taken or displaced")
	})
	return w
}

func (w *watched) consume() {
	for f, ok := w.Take(); ok; f, ok = w.Take() {
		w.mu.Lock()
		assert.GreaterOrEqual(w.t, f.Seq, w.nextSeq)
		w.nextSeq = f.Seq + 1
		w.taken++
		number := readBarcode(f)
		if number != w.newest+1 && w.taken > 1 {
			w.breaks++
		}
		w.newest = number
		w.mu.Unlock()
		f.Release()
	}
}

func (w *watched) seen() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken
}

// moves waits for that many frames more.
func (w *watched) moves(frames uint64) {
	w.t.Helper()
	from := w.seen()
	require.Eventually(w.t, func() bool { return w.seen() >= from+frames }, patience, 5*time.Millisecond, "no frames; %+v", w.Stats())
}

// reaches waits for a state.
func (w *watched) reaches(states ...State) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		now := w.Stats().State
		for _, state := range states {
			if now == state {
				return true
			}
		}
		return false
	}, patience, time.Millisecond, "not %v", states)
}

// compiled builds the RTSP server once.
var compiled = sync.OnceValues(func() (string, error) {
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "gstreamer-rtsp-server-1.0").Output()
	if err != nil {
		return "", nil // the library is not installed
	}
	folder, err := os.MkdirTemp("", "rtspserver")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "rtspserver")
	output, err := exec.Command("cc", append([]string{"-o", path, "testdata/rtspserver.c"}, strings.Fields(string(flags))...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return path, nil
})

// rtspServer is a process that streams a video.
type rtspServer struct {
	t       *testing.T
	video   string
	port    string
	process *exec.Cmd
}

func newRTSPServer(t *testing.T) *rtspServer {
	tool(t, "cc")
	tool(t, "pkg-config")
	path, err := compiled()
	require.NoError(t, err)
	if path == "" {
		t.Skip("libgstrtspserver-1.0-dev is not installed: run make deps")
	}
	s := &rtspServer{t: t, video: barcodeVideo(t, "stream.mp4", 1500, 160, 120, 50), port: "0"}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *rtspServer) uri() string { return "rtsp://127.0.0.1:" + s.port + "/test" }

func (s *rtspServer) start() {
	path, err := compiled()
	require.NoError(s.t, err)
	s.process = exec.Command(path, s.port, "( filesrc location="+s.video+" ! qtdemux ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=1 )")
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.process.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.process.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(s.t, err)
	s.port = strings.TrimSpace(line)
}

func (s *rtspServer) stop() { require.NoError(s.t, s.process.Process.Signal(syscall.SIGSTOP)) }

func (s *rtspServer) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

func TestRTSP(t *testing.T) {
	for _, decoder := range []Decoder{FFmpeg, GStreamer} {
		t.Run(string(decoder), func(t *testing.T) {
			t.Parallel()
			server := newRTSPServer(t)
			c := watch(t, &Camera{
				Name: "rtsp", URI: server.uri(), Decoder: decoder, Lossless: true, StallTimeout: 2 * time.Second,
				BackoffMin: 50 * time.Millisecond, BackoffMax: 200 * time.Millisecond,
			})
			c.moves(60)
			assert.Zero(t, c.gaps(), "the numbers in the pictures follow each other")
			assert.Zero(t, c.Stats().Displaced)

			server.kill()
			c.reaches(Reconnecting)
			assert.NotEmpty(t, c.Stats().Error)
			server.start()
			c.moves(20)
			assert.Equal(t, Running, c.Stats().State)
			assert.Empty(t, c.Stats().Error)

			before := c.Stats()
			server.stop()
			c.reaches(Stalled, Reconnecting)
			if decoder == GStreamer {
				require.Eventually(t, func() bool { return c.Stats().Abandoned > 0 }, patience, time.Millisecond, "GStreamer hangs and is left behind")
			}
			server.kill()
			server.start()
			c.moves(20)
			assert.Greater(t, c.Stats().Reconnects, before.Reconnects)

			server.stop() // the camera is closed while its server hangs
			c.last = append(c.last, server.kill)
		})
	}
}

// mjpegServer streams numbered JPEG pictures and can be stopped, restarted on its port and told to fall silent.
type mjpegServer struct {
	t       *testing.T
	address string
	server  *http.Server
	length  bool // sends Content-Length with each part
	silent  atomic.Bool
	gap     time.Duration
}

func newMJPEGServer(t *testing.T, length bool) *mjpegServer {
	s := &mjpegServer{t: t, address: "127.0.0.1:0", length: length, gap: 5 * time.Millisecond}
	s.start()
	t.Cleanup(s.kill)
	return s
}

func (s *mjpegServer) uri() string {
	return "http://camera:secret@" + s.address + "/video?token=hidden"
}

func (s *mjpegServer) start() {
	listener, err := net.Listen("tcp", s.address)
	require.NoError(s.t, err)
	s.address = listener.Addr().String()
	s.server = &http.Server{Handler: s}
	go func(server *http.Server) { _ = server.Serve(listener) }(s.server)
}

func (s *mjpegServer) kill() { _ = s.server.Close() }

func (s *mjpegServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); password != "secret" {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=--frame")
	for number := 0; r.Context().Err() == nil; number++ {
		if s.silent.Load() {
			<-r.Context().Done()
			return
		}
		data := barcodeJPEG(s.t, number, 160, 120)
		_, _ = fmt.Fprint(w, "--frame\r\nContent-Type: image/jpeg\r\n")
		if s.length {
			_, _ = fmt.Fprintf(w, "Content-Length: %d\r\n", len(data))
		}
		_, _ = fmt.Fprint(w, "\r\n")
		_, _ = w.Write(data)
		_, _ = fmt.Fprint(w, "\r\n")
		w.(http.Flusher).Flush()
		time.Sleep(s.gap)
	}
}

func TestMJPEG(t *testing.T) {
	for _, length := range []bool{true, false} {
		t.Run(fmt.Sprintf("content length %v", length), func(t *testing.T) {
			server := newMJPEGServer(t, length)
			c := watch(t, &Camera{
				Name: "mjpeg", URI: server.uri(), Lossless: true, StallTimeout: time.Second,
				BackoffMin: 20 * time.Millisecond, BackoffMax: 100 * time.Millisecond,
			})
			c.moves(50)
			assert.Zero(t, c.gaps())
			assert.Zero(t, c.Stats().Errors)
			assert.Equal(t, "http://***@"+server.address+"/video?token=***", c.Stats().URI)

			server.kill()
			c.reaches(Reconnecting)
			assert.NotContains(t, c.Stats().Error, "secret")
			server.start()
			c.moves(20)

			server.silent.Store(true)
			c.reaches(Stalled, Reconnecting)
			server.silent.Store(false)
			c.moves(20)
			assert.Zero(t, c.Stats().Abandoned, "a reader in Go can be cancelled")
		})
	}
}

func (w *watched) gaps() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.breaks
}

func TestHTTPErrors(t *testing.T) {
	video := barcodeVideo(t, "v.mp4", 20, 160, 120, 30)
	mux := http.NewServeMux()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	send := func(kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = fmt.Fprint(w, body)
		}
	}
	mux.HandleFunc("/page", send("text/html; charset=utf-8", "<html>"))
	mux.HandleFunc("/still", send("image/jpeg", "JFIF"))
	mux.HandleFunc("/nameless", send("multipart/x-mixed-replace", ""))
	mux.HandleFunc("/broken", send("multipart/x-mixed-replace; boundary=b", "--b\r\nContent-Length: -5\r\n\r\n"))
	mux.HandleFunc("/ended", send("multipart/x-mixed-replace; boundary=b", "--b--\r\n"))
	mux.HandleFunc("/junk", send("multipart/x-mixed-replace; boundary=b", "--b\r\nContent-Length: 3\r\n\r\nabc\r\n--b--\r\n"))
	mux.HandleFunc("/garbage.mp4", send("video/mp4", "not a video"))
	mux.HandleFunc("/denied", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	mux.HandleFunc("/video.mp4", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, video) })

	base := "http://" + listener.Addr().String()
	for path, c := range map[string]struct {
		kind error
		text string
	}{
		"/page":        {ErrFormat, "open @: the server sends text/html, which is no stream (use the camera's MJPEG or video URL)"},
		"/still":       {ErrFormat, "open @: the server sends image/jpeg, which is no stream (use the camera's MJPEG or video URL)"},
		"/nameless":    {ErrFormat, "open @: multipart stream without a boundary"},
		"/broken":      {ErrUnavailable, "read @: malformed multipart stream"},
		"/ended":       {ErrUnavailable, "read @: the stream ended"},
		"/junk":        {ErrPicture, "read @: not a picture that OpenCV can read"},
		"/garbage.mp4": {ErrUnavailable, "open @: FFMPEG cannot open it (" + streamHint + ")"},
		"/denied":      {ErrUnavailable, "open @: the server answers 401 Unauthorized (put user name and password into the URL, or set right those that are in it)"},
		"/none":        {ErrUnavailable, "open @: the server answers 404 Not Found (check the path)"},
	} {
		source, err := Open(t.Context(), base+path, Options{})
		if err == nil {
			_, err = source.Next(&Pool{})
			require.NoError(t, source.Close())
		}
		require.ErrorIs(t, err, c.kind, path)
		assert.EqualError(t, err, strings.ReplaceAll(c.text, "@", base+path))
	}

	source, err := Open(t.Context(), base+"/video.mp4", Options{})
	require.NoError(t, err)
	pool := &Pool{}
	defer pool.Close()
	for number := range 20 {
		f, err := source.Next(pool)
		require.NoError(t, err)
		assert.Equal(t, number, readBarcode(f))
		f.Release()
	}
	require.NoError(t, source.Close())
	_, err = source.Next(pool)
	require.Error(t, err)
}
