package source

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

	"github.com/edge-infer/edge-infer/capture"
)

// patience is how long a test waits for what must come.
const patience = 3 * time.Minute

// token has a channel of capacity 1 hold a token from a notification until it is taken.
func token(c chan<- struct{}) func() {
	return func() {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// watched is a camera with a consumer that checks what it gets.
type watched struct {
	*capture.Camera
	t      *testing.T
	notify chan struct{}
	result chan error

	last []func() // run after Close

	captures atomic.Int32 // that have begun and not come back

	mu      sync.Mutex
	changes []capture.Stats // reported to OnChange
	checked int             // of these, by waitForChange
	size    size            // of the newest frame
	taken   uint64
	newest  int // number shown by the newest frame
	nextSeq uint64
}

// watch runs a camera until the test ends.
func watch(t *testing.T, c *capture.Camera) *watched {
	w := &watched{Camera: c, t: t, notify: make(chan struct{}, 1), result: make(chan error, 1), newest: -1}
	c.Notify, c.OnChange, c.Open = token(w.notify), w.onChange, w.counted(c.Open)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
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
		require.Eventually(t, func() bool { return w.captures.Load() == 0 }, patience, 10*time.Millisecond)
		stats := c.Stats()
		w.mu.Lock()
		defer w.mu.Unlock()
		assert.Equal(t, capture.Ended, w.changes[len(w.changes)-1].State, "the last event")
		assert.Equal(t, stats.Captured, w.taken+stats.Dropped, "every frame is taken or dropped")
	})
	return w
}

// counted counts the captures that have begun and not come back.
func (w *watched) counted(open capture.Opener) capture.Opener {
	return func(ctx context.Context, uri string, options capture.Options) (capture.Source, error) {
		w.captures.Add(1)
		source, err := open(ctx, uri, options)
		if err != nil {
			w.captures.Add(-1)
			return nil, err
		}
		return &countedSource{Source: source, captures: &w.captures}, nil
	}
}

type countedSource struct {
	capture.Source
	captures *atomic.Int32
}

// Connection describes how a network camera is read; "" for others.
func (s *countedSource) Connection() string {
	if connected, ok := s.Source.(interface{ Connection() string }); ok {
		return connected.Connection()
	}
	return ""
}

func (s *countedSource) Decoder() string {
	if connected, ok := s.Source.(interface{ Decoder() string }); ok {
		return connected.Decoder()
	}
	return ""
}

// Ring implements capture.Packets.
func (s *countedSource) Ring() *capture.Ring {
	if packets, ok := s.Source.(capture.Packets); ok {
		return packets.Ring()
	}
	return nil
}

func (s *countedSource) Close() error {
	defer s.captures.Add(-1)
	return s.Source.Close()
}

// onChange is the camera's OnChange. It checks that every call reports a change with all that a consumer needs.
func (w *watched) onChange(now capture.Stats) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := len(w.changes) - 1; last >= 0 {
		before := w.changes[last]
		assert.True(w.t, now.Changed(&before), "reported twice: %+v", now)
		assert.False(w.t, now.Since.Before(before.Since), "%+v after %+v", now, before)
	}
	switch now.State {
	case capture.Running:
		assert.Empty(w.t, now.Reason)
		assert.Zero(w.t, now.Tries)
		assert.NotZero(w.t, now.LastImage)
	case capture.Lost, capture.Waiting:
		assert.NotEmpty(w.t, now.Reason)
		assert.True(w.t, now.NextTry.After(now.Since), "%+v", now)
	case capture.Stalled, capture.Hung:
		assert.NotEmpty(w.t, now.Reason)
		assert.Zero(w.t, now.NextTry)
	}
	assert.Equal(w.t, now.State == capture.Lost || now.State == capture.Waiting, !now.NextTry.IsZero(), "%+v", now)
	assert.NotContains(w.t, fmt.Sprintf("%+v", now), "secret")
	w.changes = append(w.changes, now)
}

// waitForChange waits for a change after the ones that have been checked, and returns it.
func (w *watched) waitForChange(what string, is func(s capture.Stats) bool) (found capture.Stats) {
	w.t.Helper()
	ok := assert.Eventually(w.t, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for i, s := range w.changes[w.checked:] {
			if is(s) {
				w.checked, found = w.checked+i+1, s
				return true
			}
		}
		return false
	}, patience, time.Millisecond)
	if !ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, s := range w.changes {
			w.t.Logf("%s %s: %s, tries %d", s.Since.Format("05.000"), s.State, s.Reason, s.Tries)
		}
		require.Fail(w.t, "no event "+what)
	}
	return found
}

// state returns a condition for waitForChange.
func state(want capture.State) func(s capture.Stats) bool {
	return func(s capture.Stats) bool { return s.State == want }
}

func (w *watched) consume() {
	for f, ok := w.Take(); ok; f, ok = w.Take() {
		w.mu.Lock()
		assert.GreaterOrEqual(w.t, f.Seq, w.nextSeq)
		w.nextSeq = f.Seq + 1
		w.taken++
		w.size = size{f.Width, f.Height}
		w.newest = readBarcode(onHost(w.t, f))
		w.mu.Unlock()
		f.Release()
	}
}

// onHost returns a frame whose pixels are in host memory.
func onHost(t *testing.T, f capture.Frame) capture.Frame {
	img := f.Image()
	if !img.OnDevice() {
		return f
	}
	host, err := img.ToHost(make([]byte, img.HostBytes()))
	assert.NoError(t, err)
	f.Data, f.Stride = host.Data, host.Stride
	return f
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

// serverDir is the directory of the RTSP server, which TestMain removes.
var serverDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "rtsp-server") })

// compiled builds the RTSP server once.
var compiled = sync.OnceValues(func() (string, error) {
	dir, err := serverDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "rtsp-server")
	command := exec.Command("go", "build", "-o", path, "github.com/edge-infer/edge-infer/cmd/rtsp-server")
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, output)
	}
	return path, nil
})

// rtspServer is a process that streams a video. It is a process so that it can be stopped and killed.
type rtspServer struct {
	t       *testing.T
	video   string
	port    string
	login   []string // scheme, user, password; none for everybody
	process *exec.Cmd
}

func newRTSPServer(t *testing.T) *rtspServer {
	s := &rtspServer{t: t, video: barcodeVideo(t, "stream.ts", 1500, 160, 120, 50), port: "0"}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// show starts the server again with another video.
func (s *rtspServer) show(video string) {
	s.kill()
	s.video = video
	s.start()
}

func (s *rtspServer) uri() string { return "rtsp://127.0.0.1:" + s.port + "/0" }

func (s *rtspServer) start() {
	path, err := compiled()
	require.NoError(s.t, err)
	arguments := []string{"-listen", "127.0.0.1:" + s.port}
	environment := os.Environ()
	if s.login != nil {
		arguments = append(arguments, "-authentication", s.login[0], "-user", s.login[1])
		environment = append(environment, "RTSP_PASSWORD="+s.login[2])
	}
	s.process = exec.Command(path, append(arguments, s.video)...)
	s.process.Env = environment
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	s.process.Stderr = os.Stderr
	out, err := s.process.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, s.process.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(s.t, err)
	_, s.port, err = net.SplitHostPort(strings.TrimSpace(line))
	require.NoError(s.t, err)
}

func (s *rtspServer) stop() { require.NoError(s.t, s.process.Process.Signal(syscall.SIGSTOP)) }

func (s *rtspServer) kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}

// serveTCP passes each connection to handle, in a goroutine of its own, and closes it afterwards. It returns the address.
func serveTCP(t *testing.T, handle func(connection net.Conn)) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer connection.Close()
				handle(connection)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		all.Wait()
	})
	return listener.Addr().String()
}

// mjpegServer streams numbered JPEG images and can be stopped, restarted on its port and silenced.
type mjpegServer struct {
	t       *testing.T
	address string
	server  *http.Server
	length  bool // sends Content-Length with each part
	silent  atomic.Bool
	size    atomic.Pointer[size]
	gap     time.Duration
}

func newMJPEGServer(t *testing.T, length bool) *mjpegServer {
	s := &mjpegServer{t: t, address: "127.0.0.1:0", length: length, gap: 5 * time.Millisecond}
	s.size.Store(&small)
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
		data := barcodeJPEG(s.t, number, s.size.Load().width, s.size.Load().height)
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
	img := string(barcodeJPEG(t, 1, 64, 48))
	mux.HandleFunc("/bare", send("multipart/x-mixed-replace; boundary=b", img+img))
	mux.HandleFunc("/half", send("multipart/x-mixed-replace; boundary=b", "--b\r\n\r\n"+img[:len(img)/2]+"\r\n--b\r\n"))
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
		"/page":     {capture.ErrFormat, "open @: the server sends text/html, which is not a video stream (use the camera's MJPEG or video URL)"},
		"/still":    {capture.ErrFormat, "open @: the server sends image/jpeg, which is not a video stream (use the camera's MJPEG or video URL)"},
		"/nameless": {capture.ErrUnavailable, "read @: the stream ended"},
		"/broken":   {capture.ErrUnavailable, "read @: malformed multipart stream (use another of the camera's addresses for MJPEG or video)"},
		"/bare": {capture.ErrFormat, "read @: the server sends images without the announced boundaries " +
			"(use another of the camera's addresses, or gst:souphttpsrc location=ADDRESS ! jpegparse ! jpegdec ! videoconvert ! appsink)"},
		"/half":        {capture.ErrImage, "read @: not an image that OpenCV can read"}, // ends before the first row
		"/ended":       {capture.ErrUnavailable, "read @: the stream ended"},
		"/junk":        {capture.ErrImage, "read @: not an image that OpenCV can read"},
		"/garbage.mp4": {capture.ErrUnavailable, "open @: FFMPEG cannot open it (" + streamHint + ")"},
		"/denied":      {capture.ErrDenied, "open @: the camera requires a user name and password (write them as http://USER:PASSWORD@HOST/PATH)"},
		"/none":        {capture.ErrUnavailable, "open @: the server answers 404 Not Found (check the path)"},
	} {
		source, err := Open(t.Context(), base+path, capture.Options{})
		if err == nil {
			_, err = source.Next(&capture.Pool{})
			require.NoError(t, source.Close())
		}
		require.ErrorIs(t, err, c.kind, path)
		assert.EqualError(t, err, strings.Replace(c.text, "@", base+path, 1))
	}

	source, err := Open(t.Context(), base+"/video.mp4", capture.Options{})
	require.NoError(t, err)
	pool := &capture.Pool{}
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
