package cross

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/capture/source/argustest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// machinesEnvironment names the directory of the machines that cross/camera-machine has made, RELEASE-ARCHITECTURE each; make jetson-check
// sets it.
const machinesEnvironment = "EDGE_INFER_TEST_MACHINES"

// jetson is a machine with the libraries and GStreamer of a Debian or Ubuntu release, stand-ins for what JetPack adds, and the release
// binary.
type jetson struct {
	arch        string
	root        string // its directory
	tmp         string // its /tmp, which has everything that is not of the release
	environment []string
	argus       argustest.Daemon
}

// onJetsons runs a test on every machine there is.
func onJetsons(t *testing.T, test func(t *testing.T, m *jetson)) {
	found, err := filepath.Glob(filepath.Join(os.Getenv(machinesEnvironment), "*-*", "complete"))
	require.NoError(t, err)
	if os.Getenv(machinesEnvironment) == "" || len(found) == 0 {
		t.Skip(machinesEnvironment + " names no directory of machines: make jetson-check")
	}
	for _, path := range found {
		root := filepath.Dir(path)
		name := filepath.Base(root)
		t.Run(name, func(t *testing.T) {
			_, arch, _ := strings.Cut(name, "-")
			m := &jetson{arch: arch, root: root, tmp: t.TempDir()}
			m.argus.Path = filepath.Join(m.tmp, "argus_socket")
			m.environment = []string{
				"PATH=" + os.Getenv("PATH"), "HOME=/tmp", "GST_PLUGIN_PATH=/tmp", "GST_REGISTRY=/tmp/registry", "LD_LIBRARY_PATH=/tmp",
				"EDGE_INFER_ONNXRUNTIME=/tmp/libonnxruntime.so", "FAKE_ARGUS_SOCKET=/tmp/argus_socket", "FAKE_ARGUS_IMAGE=/tmp/image",
			}
			m.copy(t, released(t, arch), "edge-infer")
			m.copy(t, "../.deps/release/onnxruntime-"+arch+"/libonnxruntime.so", "libonnxruntime.so")
			test(t, m)
		})
	}
}

func (m *jetson) copy(t *testing.T, from, name string) {
	data, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(m.tmp, name), data, 0o700)) //nolint:gosec // a program
}

// compiler makes this process's C compiler that of the machine's release binary.
func (m *jetson) compiler(t *testing.T) {
	t.Setenv("RELEASE_ARCH", m.arch)
	t.Setenv("CC", absolute(t, "cc"))
}

// addPlugin builds the stand-ins for JetPack's plugins. Like NVIDIA's they need a library with static thread-local storage, whose name is
// dispatch.
func (m *jetson) addPlugin(t *testing.T, dispatch string) {
	m.compiler(t)
	buildTLS(t, m.tmp, dispatch, neededTLS, "-ftls-model=initial-exec")
	for _, build := range []func(string, ...string) (string, error){argustest.BuildPlugin, argustest.BuildDecoder} {
		_, err := build(m.tmp, append(m.gstreamerFlags(), "-L"+m.tmp, "-Wl,--no-as-needed", "-l:"+dispatch)...)
		require.NoError(t, err)
	}
}

// gstreamerFlags are the compiler's flags for a plugin.
func (m *jetson) gstreamerFlags() []string {
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[m.arch]
	return []string{
		"-I=/usr/include/gstreamer-1.0", "-I=/usr/include/glib-2.0", "-I=/usr/lib/" + triple + "/glib-2.0/include", "-lgstbase-1.0",
		"-lgstreamer-1.0", "-lgobject-2.0", "-lglib-2.0",
	}
}

// addImage makes all cameras show parts on a belt, and returns these.
func (m *jetson) addImage(t *testing.T) []scene.Part {
	belt := scene.Scene{Width: 640, Height: 360}
	require.NoError(t, belt.Open())
	bgr := make([]byte, belt.Width*belt.Height*3)
	parts, err := belt.Draw(60, bgr, belt.Width*3, nil)
	require.NoError(t, err)
	require.NotEmpty(t, parts)
	require.NoError(t, os.WriteFile(filepath.Join(m.tmp, "image"), nv12(bgr, belt.Width, belt.Height), 0o600))
	return parts
}

// nv12 converts an image to the levels of video.
func nv12(bgr []byte, width, height int) []byte {
	luma, chroma := make([]byte, width*height), make([]byte, width*height/2)
	for y := range height {
		for x := range width {
			at := y*width + x
			bright, blue, red := color.RGBToYCbCr(bgr[3*at+2], bgr[3*at+1], bgr[3*at])
			level := func(value byte, steps int) byte { return byte(16 + int(value)*steps/255) }
			luma[at] = level(bright, 219)
			pair := y/2*width + x/2*2
			chroma[pair], chroma[pair+1] = level(blue, 224), level(red, 224)
		}
	}
	return append(luma, chroma...)
}

// daemon is edge-infer on a jetson.
type daemon struct {
	command        *exec.Cmd
	stdout, stderr written
	ended          chan error
}

// written is what a program has written so far.
type written struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *written) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(text)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// start starts edge-infer, which ends with the test.
func (m *jetson) start(t *testing.T, arguments ...string) *daemon {
	line := append([]string{absolute(t, "camera-machine"), "run", m.root, m.tmp, "/tmp/edge-infer"}, arguments...)
	if m.arch != "amd64" {
		line = append([]string{absolute(t, "emulate"), m.root}, line...)
	}
	d := &daemon{command: exec.CommandContext(t.Context(), line[0], line[1:]...), ended: make(chan error, 1)}
	d.command.Env = m.environment
	d.command.Stdout, d.command.Stderr = &d.stdout, &d.stderr
	d.command.WaitDelay = time.Minute
	require.NoError(t, d.command.Start())
	go func() { d.ended <- d.command.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output:\n%s\nlog:\n%s", d.stdout.String(), d.stderr.String())
		}
	})
	return d
}

// jetsonPatience is enough for an emulated machine that shares two cores.
const jetsonPatience = 5 * time.Minute

// await waits for a condition.
func (d *daemon) await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for began := time.Now(); !condition(); time.Sleep(200 * time.Millisecond) {
		select {
		case err := <-d.ended:
			require.NoError(t, err, "it ended before: %s", what)
			require.Fail(t, "it ended before: "+what)
		default:
		}
		require.Less(t, time.Since(began), jetsonPatience, what)
	}
}

// stop ends edge-infer in order and checks that all of its output is JSON.
func (d *daemon) stop(t *testing.T) {
	require.NoError(t, d.command.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-d.ended:
		require.NoError(t, err)
	case <-time.After(jetsonPatience):
		require.Fail(t, "it does not end")
	}
	lines := strings.Split(strings.TrimSuffix(d.stdout.String(), "\n"), "\n")
	for _, line := range lines {
		require.True(t, json.Valid([]byte(line)), "not JSON: %q", line)
	}
	require.Contains(t, lines[len(lines)-1], `"first_frame_ms"`, "the statistics come last")
}

// detected is an image's line in the output.
type detected struct {
	Camera     string
	Detections []struct {
		Label string
		Box   [4]float64
	}
}

// images returns what a camera has shown.
func (d *daemon) images(camera string) (all []detected) {
	for line := range strings.Lines(d.stdout.String()) {
		var found detected
		if json.Unmarshal([]byte(line), &found) == nil && found.Camera == camera {
			all = append(all, found)
		}
	}
	return all
}

// finds reports whether a detection is at the place of a part with its label.
func (d *detected) finds(part scene.Part) bool {
	for _, object := range d.Detections {
		width := min(object.Box[2], float64(part.X1)) - max(object.Box[0], float64(part.X0))
		height := min(object.Box[3], float64(part.Y1)) - max(object.Box[1], float64(part.Y0))
		area := (object.Box[2]-object.Box[0])*(object.Box[3]-object.Box[1]) + float64((part.X1-part.X0)*(part.Y1-part.Y0))
		if object.Label == part.Class.String() && width > 0 && height > 0 && width*height > 0.7*(area-width*height) {
			return true
		}
	}
	return false
}

// event is a line of the log.
type event struct{ Msg, Camera, Error, Decoder string }

// events returns the log of a camera.
func (d *daemon) events(camera string) (all []event) {
	for line := range strings.Lines(d.stderr.String()) {
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Camera == camera {
			all = append(all, e)
		}
	}
	return all
}

// failed reports whether a camera has failed with an error, and comesBack whether it has run again since.
func (d *daemon) failed(camera, message, err string) (failed, comesBack bool) {
	all := d.events(camera)
	at := slices.Index(all, event{Msg: message, Camera: camera, Error: err})
	return at >= 0, at >= 0 && slices.ContainsFunc(all[at:], func(e event) bool { return e.Msg == "camera recovered" })
}

const lost = "camera lost"

// TestJetsonCameras reads CSI cameras, each of which has another fault: each fault is one line in the log, and the camera comes back, while
// another one keeps its images.
func TestJetsonCameras(t *testing.T) {
	onJetsons(t, func(t *testing.T, m *jetson) {
		parts := m.addImage(t)
		m.addPlugin(t, "libGLdispatch.so.0")
		require.NoError(t, m.argus.Start())
		t.Cleanup(m.argus.Stop)
		held, err := os.Create(m.argus.Path + ".6") // another program has this sensor
		require.NoError(t, err)
		defer held.Close()
		require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
		settings := "cameras:\n"
		for name, c := range map[string]struct {
			sensor int
			stall  string
			rate   float64
		}{
			"works": {0, "60s", 0.2}, "held": {6, "10s", 0.05}, "fails": {2, "10s", 0.05}, "silent": {3, "10s", 0.05}, "hangs": {4, "10s", 0.05},
			"repeats": {5, "10s", 0.05},
		} {
			settings += fmt.Sprintf("  - {name: %s, uri: 'csi://%d?width=640&height=360&fps=4', stall: %s, rate: %g}\n",
				name, c.sensor, c.stall, c.rate)
		}
		require.NoError(t, os.WriteFile(filepath.Join(m.tmp, "config.yaml"), []byte(settings), 0o600))
		d := m.start(t, "run", "--model", "demo", "--config", "/tmp/config.yaml", "--mqtt", "off", "--json", "--log-format", "json")

		for _, fault := range []struct{ camera, message, err string }{
			{"held", "camera unavailable", "open csi://6: nvarguscamerasrc: Failed to create CaptureSession: " +
				"nvargus-daemon: sensor 6 is in use (check the ribbon cable, and sudo systemctl restart nvargus-daemon)"},
			{"fails", lost, "read csi://2: nvarguscamerasrc: TIMEOUT: Argus Error Status"},
			{"silent", lost, "read csi://3: no image for 10s"},
			{"hangs", lost, "read csi://4: no image for 10s"},
			{"repeats", lost, "read csi://5: the same image for 10s"},
		} {
			d.await(t, fault.camera+" fails: "+fault.err, func() bool {
				failed, _ := d.failed(fault.camera, fault.message, fault.err)
				return failed
			})
			if fault.camera == "held" {
				require.Empty(t, d.images("held"))
				require.NoError(t, held.Close())
			}
			d.await(t, fault.camera+" comes back", func() bool {
				_, comesBack := d.failed(fault.camera, fault.message, fault.err)
				return comesBack && len(d.images(fault.camera)) > 0
			})
		}
		d.await(t, "parts are found", func() bool {
			return slices.ContainsFunc(d.images("works"), func(image detected) bool { return slices.ContainsFunc(parts, image.finds) })
		})
		require.NotContains(t, fmt.Sprint(d.events("works")), lost)

		m.argus.Stop()
		require.NoError(t, m.argus.Start())
		const restarted = "read csi://0: nvargus-daemon was restarted"
		d.await(t, "the restart is noticed", func() bool {
			failed, _ := d.failed("works", lost, restarted)
			return failed
		})
		before := len(d.images("works"))
		d.await(t, "images come after the restart", func() bool {
			_, comesBack := d.failed("works", lost, restarted)
			return comesBack && len(d.images("works")) > before
		})
		d.stop(t)
	})
}

// TestJetsonStaticTLS reads a camera in the daemon's own process, with plugins that need a library of static thread-local storage, after a
// driver that takes what it gets. Then there is too little left for a library that was not opened first. The plugins print to the standard
// output, which has nothing but JSON.
func TestJetsonStaticTLS(t *testing.T) {
	const camera = "gst:nvarguscamerasrc ! video/x-raw(memory:NVMM),width=640,height=360,framerate=4/1,format=NV12 ! nvvidconv ! " +
		"video/x-raw,format=NV12 ! appsink"
	const refusal = "cannot allocate memory in static TLS block"
	onJetsons(t, func(t *testing.T, m *jetson) {
		m.addImage(t)
		m.environment = append(m.environment, "EDGE_INFER_LIBCUDA=/tmp/libcuda.so.1")
		require.NoError(t, m.argus.Start())
		t.Cleanup(m.argus.Stop)
		start := func() *daemon {
			return m.start(t, "run", "--model", "demo", "--camera", "csi="+camera, "--mqtt", "off", "--json", "--log-format", "json")
		}
		m.compiler(t)
		buildTLS(t, m.tmp, "libcuda.so.1", takenTLS)

		if m.arch == "arm64" {
			m.addPlugin(t, "libOther.so.0")
			d := start()
			d.await(t, "the plugin is refused", func() bool {
				return slices.ContainsFunc(d.events("csi"), func(e event) bool {
					return strings.Contains(e.Error, "nvarguscamerasrc cannot be loaded: ") && strings.Contains(e.Error, refusal)
				})
			})
			d.stop(t)
			require.Empty(t, d.images("csi"))
		}
		m.addPlugin(t, "libGLdispatch.so.0")
		d := start()
		d.await(t, "images", func() bool { return len(d.images("csi")) >= 3 })
		d.stop(t)
		require.NotContains(t, d.stderr.String(), refusal)
		require.Contains(t, d.stderr.String(), "GST_ARGUS: Creating output stream")
	})
}

// TestJetsonDecoder reads an RTSP camera, which nvv4l2decoder decodes. Without a device the CPU does; an element that fails while it runs
// is replaced on the same connection and with one line in the log.
func TestJetsonDecoder(t *testing.T) {
	video := filepath.Join(t.TempDir(), "street.ts")
	output, err := exec.Command(testtool.Program(t, "ffmpeg"), "-v", "error", "-f", "lavfi", "-i", "testsrc=size=640x360:rate=4", "-t", "30",
		"-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-g", "4", "-bf", "0", video).CombinedOutput()
	require.NoError(t, err, "%s", output)
	onJetsons(t, func(t *testing.T, m *jetson) {
		parts := m.addImage(t)
		m.addPlugin(t, "libGLdispatch.so.0")
		server := &rtsptest.Server{Files: []string{video}}
		require.NoError(t, server.Start())
		defer server.Close()
		page := freeAddress(t)
		settings := fmt.Sprintf("web: {listen: '%s'}\ncameras:\n  - {name: street, uri: '%s', stall: 60s, rate: 0.2}\n", page, server.URL(0))
		require.NoError(t, os.WriteFile(filepath.Join(m.tmp, "config.yaml"), []byte(settings), 0o600))
		plain := m.environment
		for fault, decoder := range map[string]string{
			"": "nvv4l2decoder of GStreamer", "open": "avdec_h264 of GStreamer", "fail=8": "avdec_h264 of GStreamer",
		} {
			m.environment = append(slices.Clone(plain), "FAKE_NVV4L2DECODER="+fault)
			connections := server.Stats(0).Connections
			d := m.start(t, "run", "--model", "demo", "--config", "/tmp/config.yaml", "--mqtt", "off", "--json", "--log-format", "json")
			d.await(t, fault+": parts are found", func() bool {
				return slices.ContainsFunc(d.images("street"), func(image detected) bool { return slices.ContainsFunc(parts, image.finds) })
			})
			if strings.HasPrefix(fault, "fail") {
				d.await(t, "the decoder is replaced", func() bool { return len(d.replaced("street")) > 0 })
				before := len(d.images("street"))
				d.await(t, "images come after it", func() bool { return len(d.images("street")) > before })
				lines := d.replaced("street")
				require.Len(t, lines, 1)
				require.Contains(t, lines[0], decoder+" (")
				require.Contains(t, lines[0], "nvv4l2decoder: Video decoder gave an error: code 66")
			}
			require.Contains(t, decoderOf(t, page), decoder, fault)
			d.stop(t)
			require.Equal(t, connections+1, server.Stats(0).Connections)
			require.NotContains(t, fmt.Sprint(d.events("street")), lost)
		}
	})
}

// replaced returns the decoders that took over from others.
func (d *daemon) replaced(camera string) (decoders []string) {
	for _, e := range d.events(camera) {
		if e.Msg == "decoder replaced" {
			decoders = append(decoders, e.Decoder)
		}
	}
	return decoders
}

// freeAddress returns an address of this machine where nothing listens.
func freeAddress(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// decoderOf returns what a page's status has of the decoder of its only camera.
func decoderOf(t *testing.T, page string) string {
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := &http.Client{Jar: jar, Timeout: jetsonPatience}
	response, err := client.Get("http://" + page + "/api/status")
	require.NoError(t, err)
	defer response.Body.Close()
	var status struct {
		Cameras []struct{ Capture struct{ Decoder string } }
	}
	require.NoError(t, json.NewDecoder(response.Body).Decode(&status))
	require.Len(t, status.Cameras, 1)
	return status.Cameras[0].Capture.Decoder
}
