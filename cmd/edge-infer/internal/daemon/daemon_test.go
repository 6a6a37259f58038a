package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"mime/multipart"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

func TestARealBrokerGetsEveryFrame(t *testing.T) {
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	received := programtest.Subscribe(t, port, "edge-infer/gate/#")
	p := programtest.Start(t, "--camera", "belt=demo?fps=15&width=640&height=360", "--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", port),
		"--name", "gate",
		"--frames", "45", "--json")
	var printed []string
	var stats programtest.Totals
	for {
		line, more := p.Line()
		require.True(t, more)
		var f programtest.Frame
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		if f.Stats != nil {
			require.NoError(t, json.Unmarshal(f.Stats, &stats))
			require.Regexp(t, `"mqtt":\{"detections":\{"offered":\d+,"delivered":\d+,"superseded":0,"dropped":\d+,"queued":\d+\},"state":\{"offered"`, line)
			break
		}
		printed = append(printed, line)
	}
	require.NoError(t, p.Wait())
	seen := programtest.Until(t, received, "edge-infer/gate/available stopped")
	require.Len(t, printed, 45)
	published := programtest.Payloads(seen, "edge-infer/gate/belt/detections")
	// Frames from before the connection was up are replaced by newer ones, and are counted.
	// The account has the messages of statistics too, one every ten seconds, of which a loaded machine may take several.
	account := stats.MQTT.Detections
	require.GreaterOrEqual(t, account.Offered, uint64(45))
	require.LessOrEqual(t, account.Offered, 45+uint64(stats.Seconds/10))
	require.Equal(t, account.Offered, account.Delivered+account.Dropped+account.Queued)
	require.Len(t, append(programtest.Payloads(seen, "edge-infer/gate/stats"), published...), int(account.Delivered))
	require.GreaterOrEqual(t, len(published), 30)
	require.Subset(t, printed, published, "what is printed is what is published")
	require.Equal(t, []string{"online"}, programtest.Payloads(seen, "edge-infer/gate/available")[:1])
	status := programtest.Payloads(seen, "edge-infer/gate/status")
	require.NotEmpty(t, status)
	require.Contains(t, status[len(status)-1], `"backend":"onnxruntime"`)
}

func TestABrokerThatComesBack(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	kill := programtest.Mosquitto(t, port)
	received := programtest.Subscribe(t, port, "edge-infer/gate/+/detections")
	p := programtest.Start(t, "--camera", "demo?fps=15&width=640&height=360", "--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", port),
		"--name", "gate", "--json")
	programtest.Until(t, received, "detections")
	kill()
	before, _ := p.Frame()
	for range 30 { // the frame loop does not notice
		after, _ := p.Frame()
		require.Greater(t, after.Seq, before.Seq)
	}
	programtest.Mosquitto(t, port)
	again := programtest.Subscribe(t, port, "edge-infer/gate/#")
	programtest.Until(t, again, "available online")
	programtest.Until(t, again, "detections")
	require.NoError(t, p.Stop(syscall.SIGTERM))
	programtest.Until(t, again, "available stopped")
}

func TestTheEmbeddedBrokerServesOthers(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	p := programtest.Start(t, "--camera", "demo?width=640&height=360", "--mqtt-listen", fmt.Sprintf("127.0.0.1:%d", port),
		"--name", "gate")
	for {
		line, more := p.Line()
		require.True(t, more, p.Stderr)
		if strings.Contains(line, "broker embedded, ") {
			require.Contains(t, line, fmt.Sprintf("mosquitto_sub -h 127.0.0.1 -p %d -v -t 'edge-infer/gate/#'", port))
			break
		}
	}
	received := programtest.Subscribe(t, port, "edge-infer/gate/#")
	programtest.Until(t, received, "edge-infer/gate/cam0/detections")
	started := time.Now()
	require.NoError(t, p.Stop(syscall.SIGINT))
	t.Logf("stopped after %v", time.Since(started))
}

// The last lines say what a run came to; with --json there is no such text.
func TestARunEndsWithASummary(t *testing.T) {
	t.Parallel()
	arguments := []string{"--camera", "belt=demo?fps=15&width=320&height=240", "--frames", "5", "--mqtt-listen", "127.0.0.1:0"}
	output := programtest.Output(t, arguments...)
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	require.Regexp(t, `^mqtt: \d+ events, \d+ messages delivered, \d+ dropped, \d+ waiting$`, lines[len(lines)-1])
	require.Regexp(t, `^belt: \d+ frames, .* fps, dropped \d+ \(newer\) \d+ \(error\); latency p50 .* ms p99 .* ms; \d+ detections$`, lines[len(lines)-2])
	require.Regexp(t, `^ran `, lines[len(lines)-3])
	require.NotContains(t, string(output), "--loop", "the run was limited")
	output = programtest.Output(t, append(arguments, "--json")...)
	require.NotContains(t, string(output), "messages delivered")
}

func TestAPortInUseIsSaid(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	c := programtest.Command(t, "--camera", "demo", "--mqtt-listen", listener.Addr().String())
	output, err := c.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, c.ProcessState.ExitCode())
	require.Contains(t, string(output), listener.Addr().String())
	require.Contains(t, string(output), "in use")
}

// A broker that accepts and never answers costs the stop its full grace; a second signal does not wait for it.
func TestASecondSignalStopsAtOnce(t *testing.T) {
	t.Parallel()
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer hole.Close()
	p := programtest.Start(t, "--camera", "demo?width=640&height=360", "--mqtt", "tcp://"+hole.Addr().String(), "--json")
	_, more := p.Frame()
	require.True(t, more)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	time.Sleep(10 * time.Millisecond)
	err = p.Stop(syscall.SIGTERM)
	if err != nil { // it may have ended in order already
		require.Equal(t, syscall.SIGTERM, p.Command.ProcessState.Sys().(syscall.WaitStatus).Signal())
	}
}

func TestEveryFrameOfAVideo(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, "--model", "demo", "--camera", programtest.Video(t, 40), "--json", "--mqtt", "off")
	frames, stats := p.Rest()
	require.NoError(t, p.Wait())
	require.Len(t, frames, 40)
	for i, f := range frames {
		require.EqualValues(t, i, f.Seq)
		require.Equal(t, 320, f.Width)
	}
	require.EqualValues(t, 40, stats.Cameras[0].Captured)
	require.EqualValues(t, 40, stats.Cameras[0].Inferred)
	require.Zero(t, stats.Dropped)
	require.Positive(t, stats.FirstFrame)
	require.Contains(t, p.Stderr.String(), "--loop repeats it")
}

func TestSeveralCamerasAtOnce(t *testing.T) {
	t.Parallel()
	video := programtest.Video(t, 20)
	p := programtest.Start(t, "--model", "demo", "--camera", "a="+video, "--camera", "b="+video,
		"--camera", "c=demo?frames=20&width=320&height=240", "--json", "--mqtt", "off")
	frames, _ := p.Rest()
	require.NoError(t, p.Wait())
	count := map[string]int{}
	for _, f := range frames {
		count[f.Camera]++
	}
	require.Equal(t, 20, count["a"])
	require.Equal(t, 20, count["b"])
	require.Positive(t, count["c"])
}

// mjpeg serves numbered images as an HTTP camera does, at 20 frames a second.
func mjpeg(t *testing.T, address string) (stop func(), sent *atomic.Int64) {
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	sent = new(atomic.Int64)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := multipart.NewWriter(w)
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary="+parts.Boundary())
		for r.Context().Err() == nil {
			img := image.NewRGBA(image.Rect(0, 0, 160, 120))
			shade := uint8(sent.Add(1))
			for i := range img.Pix {
				img.Pix[i] = shade
			}
			img.Set(0, 0, color.White)
			var encoded bytes.Buffer
			_ = jpeg.Encode(&encoded, img, nil)
			part, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {"image/jpeg"}, "Content-Length": {fmt.Sprint(encoded.Len())}})
			if err != nil {
				return
			}
			_, _ = part.Write(encoded.Bytes())
			w.(http.Flusher).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	})}
	go func() { _ = server.Serve(listener) }()
	stop = func() { _ = server.Close() }
	t.Cleanup(stop)
	return stop, sent
}

func TestAnHTTPCameraThatComesBack(t *testing.T) {
	t.Parallel()
	address := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	stop, sent := mjpeg(t, address)
	p := programtest.Start(t, "--model", "demo", "--camera", "http://"+address+"/", "--json", "--mqtt", "off")
	checkRecovery(t, p, stop, func() { mjpeg(t, address) })
	require.Positive(t, sent.Load())
}

func TestAnRTSPCameraThatComesBack(t *testing.T) {
	t.Parallel()
	video := rtspVideo(t, "-f", "lavfi", "-i", "testsrc=size=320x240:rate=20:duration=5")
	port := programtest.FreePort(t)
	stop := programtest.RTSPServer(t, port, video)
	p := programtest.Start(t, "--model", "demo", "--camera", fmt.Sprintf("rtsp://127.0.0.1:%d/0", port), "--json", "--mqtt", "off")
	checkRecovery(t, p, stop, func() { programtest.RTSPServer(t, port, video) })
}

// checkRecovery sees frames, takes the camera's server away, sees that none come, brings it back and sees frames again; at the end every
// captured frame is accounted for.
func checkRecovery(t *testing.T, p *programtest.Program, stop, again func()) {
	for range 20 {
		_, more := p.Frame()
		require.True(t, more)
	}
	stop()
	require.Eventually(t, func() bool { return strings.Contains(p.Stderr.String(), "camera lost") }, programtest.Patience, 20*time.Millisecond)
	for len(p.Lines) > 0 {
		<-p.Lines
	}
	again()
	for range 20 {
		_, more := p.Frame()
		require.True(t, more)
	}
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	_, stats := p.Rest()
	require.NoError(t, p.Wait())
	camera := stats.Cameras[0]
	require.Positive(t, camera.Reconnects)
	require.LessOrEqual(t, camera.Captured-camera.Inferred-camera.Dropped, uint64(1), "one frame may wait at the end: %+v", camera)
	require.Zero(t, camera.Failed)
}

// rtspVideo encodes with ffmpeg what an RTSP camera shows.
func rtspVideo(t *testing.T, input ...string) string {
	video := t.TempDir() + "/video.ts"
	arguments := slices.Concat([]string{"-loglevel", "error"}, input,
		[]string{"-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-g", "10", video})
	output, err := exec.Command(testtool.Program(t, "ffmpeg"), arguments...).CombinedOutput()
	require.NoError(t, err, string(output))
	return video
}

func TestPartsAreCountedAtTheDemoLine(t *testing.T) {
	port := programtest.FreePort(t)
	p := programtest.Start(t, "--camera", "demo?seed=3&fps=15&width=640&height=360", "--mqtt-listen", fmt.Sprintf("127.0.0.1:%d", port),
		"--name", "gate")
	for {
		line, more := p.Line()
		require.True(t, more, p.Stderr)
		if strings.Contains(line, "line belt: ") {
			require.Regexp(t, `cam0 line belt: \w+ \d+ crosses in, now 1 in 0 out$`, line)
			break
		}
	}
	received := programtest.Subscribe(t, port, "edge-infer/gate/cam0/#")
	seen := programtest.Until(t, received, `"type":"cross"`)
	seen = append(seen, programtest.Until(t, received, "edge-infer/gate/cam0/line/belt")...)
	require.NotEmpty(t, programtest.Payloads(seen, "edge-infer/gate/cam0/count/all"))
	programtest.Until(t, received, "edge-infer/gate/cam0/line/belt/") // a label's own count
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

func TestTheEmbeddedBrokerAsksForAPassword(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/password"
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	for _, test := range []struct {
		name, variable string
		flags          []string
	}{
		{"from a file", "", []string{"--mqtt-password-file", file}},
		{"from the environment", "secret", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			port := programtest.FreePort(t)
			p := programtest.StartWith(t, []string{"EDGE_INFER_MQTT_PASSWORD=" + test.variable}, append([]string{
				"--camera", "demo?width=320&height=240", "--mqtt-listen", fmt.Sprintf("127.0.0.1:%d", port), "--name", "gate", "--json",
				"--mqtt-user", "me",
			}, test.flags...)...)
			_, more := p.Frame()
			require.True(t, more)
			listen := func(arguments ...string) string {
				client := exec.Command(testtool.Program(t, "mosquitto_sub"), append([]string{
					"-h", "127.0.0.1", "-p", fmt.Sprint(port), "-t", "edge-infer/gate/available", "-C", "1", "-W", "20",
				}, arguments...)...)
				output, _ := client.CombinedOutput()
				return string(output)
			}
			require.Contains(t, listen(), "not authorised")
			require.Equal(t, "online\n", listen("-u", "me", "-P", "secret"))
			require.NoError(t, p.Stop(syscall.SIGTERM))
			require.NotContains(t, p.Stderr.String(), "secret")
		})
	}
}

// TestAModelThatTakesNoImagesIsRefusedAtTheStart in one line, before any camera is opened.
func TestAModelThatTakesNoImagesIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	c := programtest.Command(t, "--camera", "demo", "--mqtt", "off", "--json", "--model",
		programtest.Project("engine/enginetest/testdata/tensors.onnx"))
	output, err := c.CombinedOutput()
	require.ErrorContains(t, err, "exit status ")
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	require.Contains(t, lines[len(lines)-1], "the model takes no images: it has 2 inputs, images go to a single one")
	require.Equal(t, 1, strings.Count(string(output), "edge-infer: "), string(output))
	require.NotContains(t, string(output), "frames lost")
}
