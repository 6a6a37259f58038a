package web

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"log/slog"
	"math/rand/v2"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
)

// frames is a source with one camera, whose frames a test makes itself.
func frames(name string) *still {
	source := &still{Status{Cameras: []Camera{{}}}}
	source.status.Cameras[0].Capture.Name = name
	return source
}

// noise is a frame that does not compress.
func noise(format capture.PixelFormat, width, height, stride int) *capture.Frame {
	f := &capture.Frame{Data: make([]byte, stride*format.Rows(height)), Width: width, Height: height, Stride: stride, Format: format}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range f.Data {
		f.Data[i] = byte(random.Uint32())
	}
	return f
}

func inferred(f *capture.Frame, seq uint64, captured time.Duration) *pipeline.Inferred {
	return &pipeline.Inferred{
		Camera: "cam0", Seq: seq, Time: time.Unix(1e9, 0), Captured: int64(captured), Width: f.Width, Height: f.Height, Frame: f, Labels: []string{"bolt"},
		Detections: []postprocess.Detection{{Box: postprocess.Box{X1: 1, Y1: 2, X2: 3.25, Y2: 4}, Score: 0.9}}, IDs: []uint64{7},
		Tracks: []postprocess.Track{{ID: 8, State: postprocess.Lost, Index: -1}},
	}
}

func TestPicturesShowTheFrame(t *testing.T) {
	const width, height = 64, 48
	red := color.RGBA{200, 30, 40, 255}
	y, cb, cr := color.RGBToYCbCr(red.R, red.G, red.B)
	// Video has a smaller range than JPEG.
	chroma := func(v uint8) uint8 { return uint8(128.5 + (float64(v)-128)*224/255) }
	y, cb, cr = uint8(16.5+float64(y)*219/255), chroma(cb), chroma(cr)
	pixel := map[capture.PixelFormat][]byte{
		capture.BGR: {red.B, red.G, red.R}, capture.BGRx: {red.B, red.G, red.R, 0}, capture.YUYV: {y, cb, y, cr}, capture.GRAY8: {90},
	}
	for format := capture.BGR; format <= capture.GRAY8; format++ {
		for _, padding := range []int{0, 32} {
			row := format.RowBytes(width)
			f := &capture.Frame{Width: width, Height: height, Stride: row + padding, Format: format, Data: make([]byte, (row+padding)*format.Rows(height))}
			for r := range format.Rows(height) {
				for i := range row {
					at := &f.Data[r*f.Stride+i]
					switch {
					case format == capture.NV12 && r < height:
						*at = y
					case format == capture.NV12:
						*at = [2]byte{cb, cr}[i%2]
					default:
						*at = pixel[format][i%len(pixel[format])]
					}
				}
			}
			var copied raw
			copied.copy(inferred(f, 1, 0))
			var e encoder
			for _, limit := range []int{width, width / 2} {
				require.NoError(t, e.load(&copied, limit))
				data, err := e.jpeg()
				require.NoError(t, err)
				picture, err := jpeg.Decode(bytes.NewReader(data))
				require.NoError(t, err)
				require.Equal(t, image.Rect(0, 0, limit, height*limit/width), picture.Bounds())
				want := red
				if format == capture.GRAY8 {
					want = color.RGBA{90, 90, 90, 255}
				}
				r, g, b, _ := picture.At(limit/2, 10).RGBA()
				require.InDelta(t, want.R, r>>8, 6, "%v", format)
				require.InDelta(t, want.G, g>>8, 6, "%v", format)
				require.InDelta(t, want.B, b>>8, 6, "%v", format)
			}
			e.close()
		}
	}
	var e encoder
	defer e.close()
	require.EqualError(t, e.load(&raw{format: 99, pixels: []byte{1}}, 10), "pixels of format PixelFormat(99)")
	require.EqualError(t, e.load(&raw{}, 10), "picture of 0x0")
	require.ErrorContains(t, e.load(&raw{format: capture.NV12, width: 5, height: 3, pixels: make([]byte, 20)}, 10), "convert NV12 picture of 5x3: ")
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
			in := inferred(f, seq, time.Duration(capture.Monotonic()))
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
	feed(t, server, noise(capture.BGR, 320, 240, 960), 5*time.Millisecond)
	for path, kind := range map[string]string{"api/pictures?camera=cam1&camera=cam0": "multipart/mixed", "api/cameras/cam0/stream.mjpeg": "multipart/x-mixed-replace"} {
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
			picture, err := jpeg.DecodeConfig(part)
			require.NoError(t, err)
			require.Equal(t, 320, picture.Width)
		}
		require.NoError(t, response.Body.Close())
	}
	code, text, headers := ask(t, "GET", server.URL()+"api/cameras/cam0/picture.jpg", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "image/jpeg", headers.Get("Content-Type"))
	_, err := jpeg.Decode(strings.NewReader(text))
	require.NoError(t, err)
	code, text, _ = ask(t, "GET", server.URL()+"api/cameras/none/picture.jpg", nil)
	require.Equal(t, http.StatusNotFound, code)
	require.Equal(t, "no camera \"none\"\n", text)

	lines := bufio.NewReader(open(t, server.URL()+"api/detections").Body)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		if message, found := strings.CutPrefix(line, "data: "); found {
			require.Contains(t, message, `"camera":"cam0"`)
			require.Contains(t, message, `"width":320,"height":240,"latency_ms":0,"detections":[{"label":"bolt","class":0,"score":0.9,"box":[1,2,3.3,4],"track":7}],`+
				`"lost":[{"label":"bolt","class":0,"score":0,"box":[0,0,0,0],"track":8}],"zones":null,"lines":null}`)
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
		idle, pictures := begin("api/detections"), begin("api/cameras/cam0/stream.mjpeg")
		start := time.Now()
		for buffer := make([]byte, 1); time.Since(start) < 3*time.Second/2; {
			_, err := io.ReadFull(idle, buffer)
			require.NoError(t, err)
			_, err = io.ReadFull(pictures, buffer)
			require.NoError(t, err)
		}
		feed(t, server, noise(capture.GRAY8, 64, 48, 64), 5*time.Millisecond)
		_, err := io.ReadFull(pictures, make([]byte, 20_000))
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
	require.NotNil(t, server.audience.Load())
	require.NoError(t, one.Body.Close())
	require.NoError(t, two.Body.Close())
	require.Eventually(t, func() bool { return server.audience.Load() == nil }, testPatience, 10*time.Millisecond)
	server.mutex.Lock()
	require.Empty(t, server.previews)
	server.mutex.Unlock()
}

func TestAFrameCostsNothingWhenNobodyLooks(t *testing.T) {
	server := &Server{Address: "127.0.0.1:0", Source: &still{}, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, server.Open())
	defer server.Close()
	in := inferred(noise(capture.BGR, 1920, 1080, 3*1920), 1, 0)
	require.Zero(t, testing.AllocsPerRun(1000, func() { server.Frame(in) }))

	// With somebody it copies, into memory that it has.
	var copied observation
	copied.copy(in)
	require.Zero(t, testing.AllocsPerRun(100, func() { copied.copy(in) }))
	_, leave, err := server.join(true, nil)
	require.NoError(t, err)
	defer leave()
	for range 2 * observations { // the observer does not run: its queue fills
		server.Frame(in)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { server.Frame(in) }))
	require.NotZero(t, server.observer.lost.Load())
	p := &preview{fresh: make(chan struct{}, 1)}
	p.take(in, time.Second)
	require.Zero(t, testing.AllocsPerRun(100, func() { in.Captured += int64(time.Second); p.take(in, time.Second) }))
}

// TestSlowViewersSlowNobody compares what a frame costs while viewers read and while they do not.
func TestSlowViewersSlowNobody(t *testing.T) {
	server := &Server{PictureRate: 30, limits: defaultLimits()}
	server.limits.write = time.Second
	serve(t, server, frames("cam0"))
	f := noise(capture.BGR, 960, 720, 3*960)
	cost := func() time.Duration {
		var times []time.Duration
		for seq := range uint64(300) {
			in := inferred(f, seq, time.Duration(capture.Monotonic()))
			start := time.Now()
			server.Frame(in)
			times = append(times, time.Since(start))
			time.Sleep(5 * time.Millisecond)
		}
		slices.Sort(times)
		return times[len(times)*95/100]
	}
	reader := open(t, server.URL()+"api/cameras/cam0/stream.mjpeg")
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(io.Discard, reader.Body)
	}()
	swift := cost()
	require.NoError(t, reader.Body.Close())
	<-read

	var stuck []net.Conn
	for _, path := range []string{"api/cameras/cam0/stream.mjpeg", "api/pictures?camera=cam0", "api/detections"} {
		conn, err := net.Dial("tcp", server.listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4096))
		_, err = fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		require.NoError(t, err)
		stuck = append(stuck, conn)
	}
	viewers := func() int {
		server.mutex.Lock()
		defer server.mutex.Unlock()
		return server.viewers
	}
	require.Eventually(t, func() bool { return viewers() == len(stuck) }, testPatience, 10*time.Millisecond)
	slow := cost()
	require.Less(t, slow, 20*swift+time.Millisecond, "a frame costs %v at the 95th percentile while a viewer reads, %v while viewers do not", swift, slow)
	t.Logf("95th percentile of a frame: %v while a viewer reads, %v while three do not", swift, slow)
	// The two that have pictures to take are dropped; the third gets messages of a hundred bytes, which fill no buffer so soon.
	feed(t, server, f, 10*time.Millisecond)
	require.Eventually(t, func() bool { return viewers() <= 1 }, 4*testPatience, 50*time.Millisecond)
}

func TestStopEndsStreams(t *testing.T) {
	server := &Server{}
	stop := serve(t, server, frames("cam0"))
	pictures, detections := open(t, server.URL()+"api/cameras/cam0/stream.mjpeg"), open(t, server.URL()+"api/detections")
	feed(t, server, noise(capture.GRAY8, 64, 64, 64), time.Millisecond)
	stop()
	for _, response := range []*http.Response{pictures, detections} {
		_, _ = io.Copy(io.Discard, response.Body)
	}
	_, _, err := server.join(true, nil)
	require.ErrorIs(t, err, errStopping)
}
