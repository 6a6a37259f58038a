package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// beltImage is a JPEG of the demo's belt with parts on it.
func beltImage(t *testing.T) []byte {
	const width, height = 640, 360
	belt := scene.Scene{Width: width, Height: height, Rate: 30, Seed: 3}
	require.NoError(t, belt.Open())
	pixels := make([]byte, 3*width*height)
	_, err := belt.Draw(90, pixels, 3*width, nil)
	require.NoError(t, err)
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		img.Pix[4*i], img.Pix[4*i+1], img.Pix[4*i+2], img.Pix[4*i+3] = pixels[3*i+2], pixels[3*i+1], pixels[3*i], 255
	}
	var encoded bytes.Buffer
	require.NoError(t, jpeg.Encode(&encoded, img, &jpeg.Options{Quality: 95}))
	return encoded.Bytes()
}

// imageServer is an HTTP camera that shows one image, ten times a second. While it is silent its connections stay open.
func imageServer(t *testing.T, img []byte) (address string, silent *atomic.Bool, stop func()) {
	silent = new(atomic.Bool)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := multipart.NewWriter(w)
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary="+parts.Boundary())
		for ; r.Context().Err() == nil; time.Sleep(100 * time.Millisecond) {
			if silent.Load() {
				continue
			}
			part, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"image/jpeg"}, "Content-Length": {fmt.Sprint(len(img))}})
			if err != nil {
				return
			}
			_, _ = part.Write(img)
			w.(http.Flusher).Flush()
		}
	})}
	go func() { _ = server.Serve(listener) }()
	stop = func() { _ = server.Close() }
	t.Cleanup(stop)
	return "http://" + listener.Addr().String() + "/", silent, stop
}

// hearing notes when lines of a subscriber came, and remembers the newest payload of each topic.
type hearing struct {
	mu     sync.Mutex
	newest map[string]string
	ends   map[string]time.Time // of the newest end event, by camera
	live   map[string]int       // objects that have begun and not ended, by camera
	shown  map[string]bool      // the cameras that have shown something
}

func hear(lines <-chan string) *hearing {
	h := &hearing{newest: map[string]string{}, ends: map[string]time.Time{}, live: map[string]int{}, shown: map[string]bool{}}
	go func() {
		for line := range lines {
			topic, payload, _ := strings.Cut(line, " ")
			h.mu.Lock()
			h.newest[topic] = payload
			camera, kind, _ := strings.Cut(strings.TrimPrefix(topic, "edge-infer/gate/"), "/")
			switch {
			case kind == "events" && strings.Contains(payload, `"type":"new"`):
				h.live[camera]++
			case kind == "events" && strings.Contains(payload, `"type":"end"`):
				h.ends[camera] = time.Now()
				h.live[camera]--
			case kind == "count/all" && payload != "0":
				h.shown[camera] = true
			}
			h.mu.Unlock()
		}
	}()
	return h
}

func (h *hearing) said(topic string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.newest["edge-infer/gate/"+topic]
}

func (h *hearing) hasShown(camera string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown[camera]
}

// ended reports whether an object has ended since, and no object is left.
func (h *hearing) ended(camera string, since time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ends[camera].After(since) && h.live[camera] == 0
}

// TestEverySurfaceSaysThatACameraIsGone kills a camera of each kind in the running program, one after another, and waits until every
// surface says so; the log of the test is the table of the times.
// One program serves all kinds, which is why they are in one function.
func TestEverySurfaceSaysThatACameraIsGone(t *testing.T) {
	t.Parallel()
	img := beltImage(t)
	dir := t.TempDir()
	still := filepath.Join(dir, "still.jpg")
	require.NoError(t, os.WriteFile(still, img, 0o600))
	video := filepath.Join(dir, "video.avi")
	output, err := exec.Command(testtool.Program(t, "ffmpeg"), "-loglevel", "error", "-loop", "1", "-framerate", "10", "-i", still,
		"-frames:v", "20",
		"-c:v", "mjpeg", "-q:v", "2", video).CombinedOutput()
	require.NoError(t, err, string(output))
	rtsp := programtest.FreePort(t)
	stopRTSP := programtest.RTSPServer(t, rtsp, rtspVideo(t, "-loop", "1", "-framerate", "10", "-t", "5", "-i", still))
	killed, _, stopHTTP := imageServer(t, img)
	muted, silent, _ := imageServer(t, img)
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	heard := hear(programtest.Subscribe(t, port, "edge-infer/gate/#"))
	p := programtest.Start(t, "--model", "demo", "--camera", fmt.Sprintf("rtsp=rtsp://127.0.0.1:%d/0", rtsp), "--camera", "http="+killed,
		"--camera", "silent="+muted,
		"--camera", "video=file://"+video+"?loop=1", "--camera", "demo=demo?width=640&height=360&fps=10&seed=3&frames=150",
		"--mqtt", fmt.Sprintf("127.0.0.1:%d", port), "--name", "gate", "--web", "127.0.0.1:0")
	page := p.PrintedAfter("web page at ")
	p.Discard()
	client := programtest.Visitor(t)
	const pause = 100 * time.Millisecond // between two looks: the page answers 50 requests a second
	get := func(path string) string {
		_, text := programtest.Get(t, client, page+path)
		return string(text)
	}
	state := func(camera string) string {
		var status struct {
			Cameras []struct {
				Capture struct{ Name, State string }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(get("api/status")), &status))
		for _, c := range status.Cameras {
			if c.Capture.Name == camera {
				return c.Capture.State
			}
		}
		return "unknown"
	}
	for _, camera := range []struct {
		name  string
		kill  func()
		final bool // a demo that has come to its end is not down
	}{
		{"demo", func() {}, true},
		{"rtsp", stopRTSP, false},
		{"http", stopHTTP, false},
		{"silent", func() { silent.Store(true) }, false},
		{"video", func() { require.NoError(t, os.WriteFile(video, []byte("no video"), 0o600)) }, false},
	} {
		name := camera.name
		require.Eventually(t, func() bool { return heard.hasShown(name) }, programtest.Patience, 5*time.Millisecond, "%s: %s", name, p.Stderr)
		if camera.final {
			require.Eventually(t, func() bool { return state(name) == "ended" }, programtest.Patience, pause)
		}
		start := time.Now()
		camera.kill()
		line, since := fmt.Sprintf("%-7s", name), start
		if camera.final {
			since = time.Time{} // it came to its end before anybody looked
		}
		waiting := map[string]func() bool{
			"event end": func() bool { return heard.ended(name, since) },
			"count":     func() bool { return heard.said(name+"/count/all") == "0" },
			"available": func() bool { return heard.said(name+"/available") == "offline" },
			"status": func() bool {
				_, rest, _ := strings.Cut(heard.said("status"), `"`+name+`":{"state":"`)
				return rest != "" && !strings.HasPrefix(rest, `running"`)
			},
			"readyz":     func() bool { return camera.final || strings.Contains(get("readyz"), "camera "+name+": ") },
			"api/status": func() bool { return state(name) != "running" },
			"metrics":    func() bool { return strings.Contains(get("metrics"), `edge_infer_camera_running{camera="`+name+`"} 0`) },
		}
		took := map[string]time.Duration{}
		require.Eventually(t, func() bool {
			for surface, says := range waiting {
				if took[surface] == 0 && says() {
					took[surface] = time.Since(start)
				}
			}
			return len(took) == len(waiting)
		}, programtest.Patience, pause, "%s: only %v: %s", name, took, p.Stderr)
		for _, surface := range []string{"event end", "count", "available", "status", "readyz", "api/status", "metrics"} {
			line += fmt.Sprintf("  %s %.2f s", surface, took[surface].Seconds())
		}
		t.Log(line)
	}
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
