package main

import (
	"bufio"
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
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// serve runs a server until the test ends or the returned function kills it, and waits until its port answers.
func serve(t *testing.T, port int, program string, arguments ...string) (kill func()) {
	server := exec.Command(program, arguments...)
	require.NoError(t, server.Start())
	ended := make(chan struct{})
	go func() {
		_ = server.Wait()
		close(ended)
	}()
	kill = func() {
		_ = server.Process.Kill()
		<-ended
	}
	t.Cleanup(kill)
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}, patience, 10*time.Millisecond)
	return kill
}

// mosquitto runs a real broker on a port.
func mosquitto(t *testing.T, port int) (kill func()) {
	return serve(t, port, tool(t, "mosquitto"), "-p", fmt.Sprint(port))
}

// subscribe runs mosquitto_sub on everything below the topic; each line is topic and payload.
func subscribe(t *testing.T, port int, topic string) <-chan string {
	client := exec.Command(tool(t, "mosquitto_sub"), "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-q", "1", "-v", "-t", topic)
	stdout, err := client.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, client.Start())
	lines := make(chan string, 10000)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			lines <- scanner.Text()
		}
		_ = client.Wait()
	}()
	t.Cleanup(func() {
		_ = client.Process.Kill()
		for range lines {
			continue
		}
	})
	return lines
}

// until reads lines of the subscriber up to one with that text.
func until(t *testing.T, lines <-chan string, text string) (before []string) {
	deadline := time.After(patience)
	for {
		select {
		case line, more := <-lines:
			require.True(t, more, "subscriber ended before %q", text)
			if strings.Contains(line, text) {
				return before
			}
			before = append(before, line)
		case <-deadline:
			require.FailNow(t, "subscriber never got "+text, "%q", before)
		}
	}
}

func payloads(lines []string, topic string) (found []string) {
	for _, line := range lines {
		if rest, ok := strings.CutPrefix(line, topic+" "); ok {
			found = append(found, rest)
		}
	}
	return found
}

func TestARealBrokerGetsEveryFrame(t *testing.T) {
	port := freePort(t)
	mosquitto(t, port)
	received := subscribe(t, port, "edge-infer/gate/#")
	p := start(t, "--camera", "belt=demo?fps=15&width=640&height=360", "--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", port), "--name", "gate",
		"--frames", "45", "--json")
	var printed []string
	var stats totals
	for {
		line, more := p.line()
		require.True(t, more)
		var f frame
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		if f.Stats != nil {
			require.NoError(t, json.Unmarshal(f.Stats, &stats))
			require.Regexp(t, `"mqtt":\{"detections":\{"offered":45,"delivered":\d+,"superseded":0,"dropped":\d+,"queued":\d+\},"state":\{"offered"`, line)
			break
		}
		printed = append(printed, line)
	}
	require.NoError(t, p.wait())
	seen := until(t, received, "edge-infer/gate/available stopped")
	require.Len(t, printed, 45)
	published := payloads(seen, "edge-infer/gate/belt/detections")
	// Frames from before the connection was up are displaced by newer ones, and are counted.
	account := stats.MQTT.Detections
	require.EqualValues(t, 45, account.Offered)
	require.Equal(t, account.Offered, account.Delivered+account.Dropped+account.Queued)
	require.Len(t, published, int(account.Delivered))
	require.GreaterOrEqual(t, len(published), 30)
	require.Subset(t, printed, published, "what is printed is what is published")
	require.Equal(t, []string{"online"}, payloads(seen, "edge-infer/gate/available")[:1])
	status := payloads(seen, "edge-infer/gate/status")
	require.NotEmpty(t, status)
	require.Contains(t, status[len(status)-1], `"backend":"onnxruntime"`)
}

func TestABrokerThatComesBack(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	kill := mosquitto(t, port)
	received := subscribe(t, port, "edge-infer/gate/+/detections")
	p := start(t, "--camera", "demo?fps=15&width=640&height=360", "--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", port), "--name", "gate", "--json")
	until(t, received, "detections")
	kill()
	before, _ := p.frame()
	for range 30 { // the frame loop does not notice
		after, _ := p.frame()
		require.Greater(t, after.Seq, before.Seq)
	}
	mosquitto(t, port)
	again := subscribe(t, port, "edge-infer/gate/#")
	until(t, again, "available online")
	until(t, again, "detections")
	require.NoError(t, p.stop(syscall.SIGTERM))
	until(t, again, "available stopped")
}

func TestTheEmbeddedBrokerServesOthers(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	p := start(t, "--camera", "demo?width=640&height=360", "--mqtt-listen", fmt.Sprintf("127.0.0.1:%d", port), "--name", "gate")
	for {
		line, more := p.line()
		require.True(t, more, p.stderr)
		if strings.Contains(line, "embedded MQTT broker at 127.0.0.1:") {
			require.Contains(t, line, fmt.Sprintf("mosquitto_sub -h 127.0.0.1 -p %d -v -t 'edge-infer/gate/#'", port))
			break
		}
	}
	received := subscribe(t, port, "edge-infer/gate/#")
	until(t, received, "edge-infer/gate/cam0/detections")
	started := time.Now()
	require.NoError(t, p.stop(syscall.SIGINT))
	t.Logf("stopped after %v", time.Since(started))
}

func TestAPortInUseIsSaid(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	c := command(t, "--camera", "demo", "--mqtt-listen", listener.Addr().String())
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
	p := start(t, "--camera", "demo?width=640&height=360", "--mqtt", "tcp://"+hole.Addr().String(), "--json")
	_, more := p.frame()
	require.True(t, more)
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	time.Sleep(10 * time.Millisecond)
	err = p.stop(syscall.SIGTERM)
	if err != nil { // it may have ended in order already
		require.Equal(t, syscall.SIGTERM, p.command.ProcessState.Sys().(syscall.WaitStatus).Signal())
	}
}

func TestEveryFrameOfAFilm(t *testing.T) {
	t.Parallel()
	p := start(t, "--camera", video(t, 40), "--json", "--mqtt", "off")
	frames, stats := p.rest()
	require.NoError(t, p.wait())
	require.Len(t, frames, 40)
	for i, f := range frames {
		require.EqualValues(t, i, f.Seq)
		require.Equal(t, 320, f.Width)
	}
	require.EqualValues(t, 40, stats.Cameras[0].Captured)
	require.EqualValues(t, 40, stats.Cameras[0].Inferred)
	require.Zero(t, stats.Dropped)
	require.Positive(t, stats.FirstFrame)
}

func TestSeveralCamerasAtOnce(t *testing.T) {
	t.Parallel()
	film := video(t, 20)
	p := start(t, "--camera", "a="+film, "--camera", "b="+film, "--camera", "c=demo?frames=20&width=320&height=240", "--json", "--mqtt", "off")
	frames, _ := p.rest()
	require.NoError(t, p.wait())
	count := map[string]int{}
	for _, f := range frames {
		count[f.Camera]++
	}
	require.Equal(t, 20, count["a"])
	require.Equal(t, 20, count["b"])
	require.Positive(t, count["c"])
}

// mjpeg serves numbered pictures as an HTTP camera does, at 20 frames a second.
func mjpeg(t *testing.T, address string) (stop func(), sent *atomic.Int64) {
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	sent = new(atomic.Int64)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := multipart.NewWriter(w)
		w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary="+parts.Boundary())
		for r.Context().Err() == nil {
			picture := image.NewRGBA(image.Rect(0, 0, 160, 120))
			shade := uint8(sent.Add(1))
			for i := range picture.Pix {
				picture.Pix[i] = shade
			}
			picture.Set(0, 0, color.White)
			var encoded bytes.Buffer
			_ = jpeg.Encode(&encoded, picture, nil)
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
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	stop, sent := mjpeg(t, address)
	p := start(t, "--camera", "http://"+address+"/", "--json", "--mqtt", "off")
	checkRecovery(t, p, stop, func() { mjpeg(t, address) })
	require.Positive(t, sent.Load())
}

func TestAnRTSPCameraThatComesBack(t *testing.T) {
	t.Parallel()
	server := compileRTSPServer(t)
	port := freePort(t)
	stop := startRTSPServer(t, server, port)
	p := start(t, "--camera", fmt.Sprintf("rtsp://127.0.0.1:%d/test", port), "--json", "--mqtt", "off")
	checkRecovery(t, p, stop, func() { startRTSPServer(t, server, port) })
}

// checkRecovery sees frames, takes the camera's server away, sees that none come, brings it back and sees frames again; at the end every
// captured frame is accounted for.
func checkRecovery(t *testing.T, p *program, stop, again func()) {
	for range 20 {
		_, more := p.frame()
		require.True(t, more)
	}
	stop()
	require.Eventually(t, func() bool { return strings.Contains(p.stderr.String(), "camera lost") }, patience, 20*time.Millisecond)
	for len(p.lines) > 0 {
		<-p.lines
	}
	again()
	for range 20 {
		_, more := p.frame()
		require.True(t, more)
	}
	require.NoError(t, p.command.Process.Signal(syscall.SIGTERM))
	_, stats := p.rest()
	require.NoError(t, p.wait())
	camera := stats.Cameras[0]
	require.Positive(t, camera.Reconnects)
	require.LessOrEqual(t, camera.Captured-camera.Inferred-camera.Displaced, uint64(1), "one frame may wait at the end: %+v", camera)
	require.Zero(t, camera.Failed)
}

func compileRTSPServer(t *testing.T) string {
	tool(t, "pkg-config")
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "gstreamer-rtsp-server-1.0").Output()
	if err != nil {
		t.Skip("gstreamer-rtsp-server-1.0 is not installed; make deps installs it")
	}
	program := t.TempDir() + "/rtspserver"
	arguments := append([]string{"-O1", "-o", program, "../../capture/testdata/rtspserver.c"}, strings.Fields(string(flags))...)
	output, err := exec.Command("cc", arguments...).CombinedOutput()
	require.NoError(t, err, string(output))
	return program
}

func startRTSPServer(t *testing.T, program string, port int) (stop func()) {
	return serve(t, port, program, fmt.Sprint(port), "( videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=20/1 ! "+
		"x264enc tune=zerolatency speed-preset=ultrafast key-int-max=10 ! rtph264pay name=pay0 pt=96 )")
}

func TestPartsAreCountedAtTheDemoLine(t *testing.T) {
	port := freePort(t)
	p := start(t, "--camera", "demo?seed=3&fps=15&width=640&height=360", "--mqtt-listen", fmt.Sprintf("127.0.0.1:%d", port), "--name", "gate")
	for {
		line, more := p.line()
		require.True(t, more, p.stderr)
		if strings.Contains(line, "line belt: ") {
			require.Regexp(t, `cam0 line belt: \w+ \d+ crosses in, now 1 in 0 out$`, line)
			break
		}
	}
	received := subscribe(t, port, "edge-infer/gate/cam0/#")
	seen := until(t, received, `"type":"cross"`)
	seen = append(seen, until(t, received, "edge-infer/gate/cam0/line/belt")...)
	require.NotEmpty(t, payloads(seen, "edge-infer/gate/cam0/count/all"))
	until(t, received, "edge-infer/gate/cam0/line/belt/") // a label's own count
	require.NoError(t, p.stop(syscall.SIGTERM))
}

func TestADeviceIsForgotten(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	mosquitto(t, port)
	broker := fmt.Sprintf("tcp://127.0.0.1:%d", port)
	p := start(t, "--camera", "demo?width=320&height=240", "--mqtt", broker, "--name", "gate", "--json")
	until(t, subscribe(t, port, "#"), "homeassistant/device/edge-infer-gate/config")
	require.NoError(t, p.stop(syscall.SIGTERM))
	output, err := command(t, "config", "forget-discovery", "--mqtt", broker, "--name", "gate").CombinedOutput()
	require.NoError(t, err, string(output))
	require.Regexp(t, `^gate: \d+ retained messages removed\n$`, string(output))
	left := exec.Command(tool(t, "mosquitto_sub"), "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-t", "#", "-W", "1")
	nothing, _ := left.Output() // it ends by its time limit, which is an error to it
	require.Empty(t, string(nothing))
}

func TestThePasswordOfACredential(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("CREDENTIALS_DIRECTORY", folder)
	require.Empty(t, passwordFile(""))
	path := folder + "/mqtt-password"
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.Empty(t, passwordFile(""), "an empty credential is none")
	require.NoError(t, os.WriteFile(path, []byte("secret"), 0o600))
	require.Equal(t, path, passwordFile(""))
	require.Equal(t, "/other", passwordFile("/other"))
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
			port := freePort(t)
			p := startWith(t, []string{"EDGE_INFER_MQTT_PASSWORD=" + test.variable}, append([]string{
				"--camera", "demo?width=320&height=240", "--mqtt-listen", fmt.Sprintf("127.0.0.1:%d", port), "--name", "gate", "--json", "--mqtt-user", "me",
			}, test.flags...)...)
			_, more := p.frame()
			require.True(t, more)
			listen := func(arguments ...string) string {
				client := exec.Command(tool(t, "mosquitto_sub"), append([]string{
					"-h", "127.0.0.1", "-p", fmt.Sprint(port), "-t", "edge-infer/gate/available", "-C", "1", "-W", "20",
				}, arguments...)...)
				output, _ := client.CombinedOutput()
				return string(output)
			}
			require.Contains(t, listen(), "not authorised")
			require.Equal(t, "online\n", listen("-u", "me", "-P", "secret"))
			require.NoError(t, p.stop(syscall.SIGTERM))
			require.NotContains(t, p.stderr.String(), "secret")
		})
	}
}
