package web

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"image/jpeg"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live/livetest"
	"github.com/edge-infer/edge-infer/engine"
)

// frames is a source with one camera, whose frames a test makes itself.
func frames(name string) *still {
	source := &still{Status{Cameras: []Camera{{}}}}
	source.status.Cameras[0].Capture.Name = name
	return source
}

// open begins a stream and returns its body.
func open(t testing.TB, address string) *http.Response {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := (&http.Client{Transport: transport}).Get(address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	require.Equal(t, http.StatusOK, response.StatusCode)
	return response
}

// feed gives frames to a server from a goroutine of its own until the test ends.
func feed(t testing.TB, server *Server, f *capture.Frame, pause time.Duration) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for seq := uint64(0); ; seq++ {
			in := livetest.Result(f, seq, time.Duration(capture.Monotonic()))
			server.Frame(in)
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-done
	})
}

func TestStreams(t *testing.T) {
	source := frames("cam0")
	second := Camera{}
	second.Capture.Name = "cam1"
	source.status.Cameras = append(source.status.Cameras, second)
	server := &Server{}
	serve(t, server, source)
	feed(t, server, livetest.Noise(engine.BGR, 320, 240, 960), 5*time.Millisecond)
	for path, kind := range map[string]string{
		"api/images?camera=cam1&camera=cam0": "multipart/mixed",
		"api/cameras/cam0/stream.mjpeg":      "multipart/x-mixed-replace",
	} {
		response := open(t, server.URL()+path)
		media, parameters, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
		require.NoError(t, err)
		require.Equal(t, kind, media)
		parts := multipart.NewReader(response.Body, parameters["boundary"])
		var last string
		for range 3 {
			part, err := parts.NextRawPart()
			require.NoError(t, err)
			require.Equal(t, map[string]string{"multipart/mixed": "1", "multipart/x-mixed-replace": "0"}[kind], part.Header.Get("X-Camera"))
			require.Equal(t, "320x240", part.Header.Get("X-Size"))
			require.NotEqual(t, last, part.Header.Get("X-Sequence"))
			last = part.Header.Get("X-Sequence")
			img, err := jpeg.DecodeConfig(part)
			require.NoError(t, err)
			require.Equal(t, 320, img.Width)
		}
		require.NoError(t, response.Body.Close())
	}
	code, text, headers := ask(t, "GET", server.URL()+"api/cameras/cam0/image.jpg", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "image/jpeg", headers.Get("Content-Type"))
	_, err := jpeg.Decode(strings.NewReader(text))
	require.NoError(t, err)
	code, text, _ = ask(t, "GET", server.URL()+"api/cameras/none/image.jpg", nil)
	require.Equal(t, http.StatusNotFound, code)
	require.Equal(t, "no camera \"none\"\n", text)

	lines := bufio.NewReader(open(t, server.URL()+"api/detections").Body)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if message, found := strings.CutPrefix(line, "data: "); found {
			require.Contains(t, message, `"camera":"cam0"`)
			require.Contains(t, message, `"width":320,"height":240,"latency_ms":0,"detections":[{"label":"bolt","class":0,"score":0.9,"box":[1,2,3.25,4],"track":7}],`+
				`"lost":[{"label":"bolt","class":0,"score":0,"box":[0,0,0,0],"track":8}],"zones":[],"lines":[]}`)
			break
		}
	}
}

// TestStreamsOutliveTheTimeOfARequest, over HTTP/1.1 and HTTP/2, while nothing is to be said and while there is.
func TestStreamsOutliveTheTimeOfARequest(t *testing.T) {
	certificate, key := selfSigned(t)
	for _, encrypted := range []bool{false, true} {
		server := &Server{limits: defaultLimits()}
		server.limits.request, server.limits.heartbeat = time.Second, 100*time.Millisecond
		if encrypted {
			server.CertificateFile, server.KeyFile = certificate, key
		}
		serve(t, server, frames("cam0"))
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		t.Cleanup(transport.CloseIdleConnections)
		begin := func(path string) io.Reader {
			response, err := (&http.Client{Transport: transport}).Get(server.URL() + path)
			require.NoError(t, err)
			t.Cleanup(func() { _ = response.Body.Close() })
			require.Equal(t, encrypted, response.ProtoMajor == 2)
			return response.Body
		}
		idle, images := begin("api/detections"), begin("api/cameras/cam0/stream.mjpeg")
		start := time.Now()
		for buffer := make([]byte, 1); time.Since(start) < 3*time.Second/2; {
			_, err := io.ReadFull(idle, buffer)
			require.NoError(t, err)
			_, err = io.ReadFull(images, buffer)
			require.NoError(t, err)
		}
		feed(t, server, livetest.Noise(engine.GRAY8, 64, 48, 64), 5*time.Millisecond)
		_, err := io.ReadFull(images, make([]byte, 20_000))
		require.NoError(t, err)
	}
}

func TestViewersAreBounded(t *testing.T) {
	server := &Server{Viewers: 2}
	serve(t, server, frames("cam0"))
	one, two := open(t, server.URL()+"api/detections"), open(t, server.URL()+"api/cameras/cam0/stream.mjpeg")
	code, text, _ := ask(t, "GET", server.URL()+"api/detections", nil)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Equal(t, "too many viewers\n", text)
	require.Equal(t, 2, server.feed.Stats().Viewers)
	require.NoError(t, one.Body.Close())
	require.NoError(t, two.Body.Close())
	require.Eventually(t, func() bool { return server.feed.Stats().Viewers == 0 }, testPatience, 10*time.Millisecond)
}

// stuck has three viewers that ask for streams and never read.
func stuck(t *testing.T, server *Server) (viewers func() int) {
	paths := []string{"api/cameras/cam0/stream.mjpeg", "api/images?camera=cam0", "api/detections"}
	for _, path := range paths {
		conn, err := net.Dial("tcp", server.at.String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		require.NoError(t, err)
	}
	viewers = func() int { return server.feed.Stats().Viewers }
	require.Eventually(t, func() bool { return viewers() == len(paths) }, testPatience, 10*time.Millisecond)
	return viewers
}

// TestSlowViewersSlowNobody: while a viewer may take an hour for an image, frames and images go on.
func TestSlowViewersSlowNobody(t *testing.T) {
	const images = 60 // of over 500 kB: far more than connections that nobody reads can hold
	server := &Server{FrameRate: 30, limits: defaultLimits()}
	server.limits.write = time.Hour
	serve(t, server, frames("cam0"))
	viewers := stuck(t, server)
	feed(t, server, livetest.Noise(engine.BGR, 960, 720, 3*960), 5*time.Millisecond)
	require.Eventually(t, func() bool { return server.feed.Stats().Images >= images }, testPatience, 10*time.Millisecond)
	require.Equal(t, 3, viewers())
}

// TestStuckViewersAreDropped: the two that have images to take; the third gets messages of a hundred bytes, which fill no buffer so soon.
func TestStuckViewersAreDropped(t *testing.T) {
	server := &Server{FrameRate: 30, limits: defaultLimits()}
	server.limits.write = 100 * time.Millisecond
	serve(t, server, frames("cam0"))
	viewers := stuck(t, server)
	feed(t, server, livetest.Noise(engine.BGR, 960, 720, 3*960), 10*time.Millisecond)
	require.Eventually(t, func() bool { return viewers() <= 1 }, 4*testPatience, 50*time.Millisecond)
}

func TestStopEndsStreams(t *testing.T) {
	server := &Server{}
	stop := serve(t, server, frames("cam0"))
	images, detections := open(t, server.URL()+"api/cameras/cam0/stream.mjpeg"), open(t, server.URL()+"api/detections")
	feed(t, server, livetest.Noise(engine.GRAY8, 64, 64, 64), time.Millisecond)
	stop()
	for _, response := range []*http.Response{images, detections} {
		_, _ = io.Copy(io.Discard, response.Body)
	}
}
