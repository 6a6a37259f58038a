package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// TestWhatIsSwitchedOffStaysOff turns detection off over MQTT and starts the program again.
func TestWhatIsSwitchedOffStaysOff(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	state := []string{"XDG_STATE_HOME=" + t.TempDir()}
	arguments := []string{
		"--camera", "belt=demo?fps=15&width=640&height=360", "--mqtt", fmt.Sprintf("127.0.0.1:%d", port), "--name", "gate", "--json",
	}
	received := programtest.Subscribe(t, port, "edge-infer/gate/#")
	p := programtest.StartWith(t, state, arguments...)
	programtest.Until(t, received, "belt/detect/state ON")
	programtest.Until(t, received, "belt/available online")
	programtest.Until(t, received, "belt/detections")
	require.NoError(t, exec.Command(testtool.Program(t, "mosquitto_pub"), "-p", fmt.Sprint(port), "-t", "edge-infer/gate/belt/detect/set",
		"-m", "OFF").Run())
	programtest.Until(t, received, "belt/detect/state OFF")
	require.NoError(t, p.Stop(syscall.SIGTERM))
	programtest.Until(t, received, "gate/available stopped")
	recorded, err := os.ReadFile(filepath.Join(strings.TrimPrefix(state[0], "XDG_STATE_HOME="), "edge-infer", "gate", "audit.jsonl"))
	require.NoError(t, err)
	require.Regexp(t, `^{"time":"[^"]+","over":"mqtt","from":"tcp://127.0.0.1:\d+","what":"belt detect \\"OFF\\""}\n$`, string(recorded))

	p = programtest.StartWith(t, state, arguments...)
	programtest.Until(t, received, "gate/available online")
	before := programtest.Until(t, received, "belt/available online") // images come
	require.Empty(t, programtest.Payloads(before, "edge-infer/gate/belt/detections"))
	require.NotContains(t, programtest.Payloads(before, "edge-infer/gate/belt/detect/state"), "ON")
	require.NoError(t, exec.Command(testtool.Program(t, "mosquitto_pub"), "-p", fmt.Sprint(port), "-t", "edge-infer/gate/belt/detect/set",
		"-m", "ON").Run())
	programtest.Until(t, received, "belt/detections")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// remoteDaemon is a daemon under remote control, with a configuration file that changes.
type remoteDaemon struct {
	*programtest.Program
	t        *testing.T
	port     int
	dir      string
	received <-chan string
	reloads  int
}

func startRemoteDaemon(t *testing.T, camera, rest string) *remoteDaemon {
	d := &remoteDaemon{t: t, port: programtest.FreePort(t), dir: t.TempDir()}
	programtest.Mosquitto(t, d.port)
	d.received = programtest.Subscribe(t, d.port, "edge-infer/gate/#")
	d.write(camera, rest)
	d.start()
	return d
}

func (d *remoteDaemon) start() {
	d.Program = programtest.Start(d.t, "--config", filepath.Join(d.dir, "edge-infer.yaml"), "--json")
	d.reloads = 0
}

func (d *remoteDaemon) write(camera, rest string) {
	text := fmt.Sprintf("name: gate\nmqtt: {url: 'tcp://127.0.0.1:%d', spool: '%s'}\n%s\n", d.port, filepath.Join(d.dir, "spool"), rest) +
		fmt.Sprintf("cameras: [{name: belt, uri: 'demo?fps=10&width=480&height=360'%s}]\n", camera)
	require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, "edge-infer.yaml"), []byte(text), 0o600))
}

// edit writes the configuration and waits until it is in force.
func (d *remoteDaemon) edit(camera, rest string) {
	d.t.Helper()
	d.write(camera, rest)
	d.reloads++
	require.Eventually(d.t, func() bool { return strings.Count(d.Stderr.String(), `msg="configuration changed"`) == d.reloads },
		programtest.Patience, 10*time.Millisecond, "%s", d.Stderr)
}

// set publishes a command and waits for the value that is in force then.
func (d *remoteDaemon) set(control, value, state string) {
	d.t.Helper()
	topic := "edge-infer/gate/belt/" + control + "/set"
	require.NoError(d.t, exec.Command(testtool.Program(d.t, "mosquitto_pub"), "-p", fmt.Sprint(d.port), "-t", topic, "-m", value).Run())
	programtest.Until(d.t, d.received, "belt/"+control+"/state "+state)
}

// check compares the state topic, and the remotely set values as they are kept.
func (d *remoteDaemon) check(control, state, kept string) {
	d.t.Helper()
	programtest.Until(d.t, programtest.Subscribe(d.t, d.port, "edge-infer/gate/belt/"+control+"/state"), "/state "+state)
	require.Eventually(d.t, func() bool {
		text, err := os.ReadFile(filepath.Join(d.dir, "spool", "remote.json"))
		return err == nil && string(text) == kept
	}, programtest.Patience, 10*time.Millisecond, "remote.json should be %s", kept)
}

// detected returns the labels and the lowest score of detections that were captured from now on.
func (d *remoteDaemon) detected(frames int) (labels map[string]bool, least float64) {
	d.t.Helper()
	labels, least = map[string]bool{}, 1
	for from := time.Now(); frames > 0; {
		f, more := d.Frame()
		require.True(d.t, more, "%s", d.Stderr)
		if !f.Time.After(from) {
			continue
		}
		frames--
		for _, text := range f.Detections {
			var one struct {
				Label string
				Score float64
			}
			require.NoError(d.t, json.Unmarshal(text, &one))
			labels[one.Label] = true
			least = min(least, one.Score)
		}
	}
	return labels, least
}

// TestARemoteThresholdOutlastsTheFile: a threshold that was set remotely is the same in force, in its state topic and in remote.json,
// whatever is edited in the file and after a restart, until it is withdrawn.
func TestARemoteThresholdOutlastsTheFile(t *testing.T) {
	t.Parallel()
	const kept = `{"belt":{"threshold":0.9}}`
	d := startRemoteDaemon(t, ", confidence: 0.4", "detect: {confidence: 0.25}")
	programtest.Until(t, d.received, "belt/detections")
	check := func() {
		t.Helper()
		d.check("threshold", "0.9", kept)
		_, least := d.detected(5)
		require.GreaterOrEqual(t, least, 0.9)
	}
	d.set("threshold", "0.9", "0.9")
	check()
	d.edit(", confidence: 0.3", "detect: {confidence: 0.25}")
	check()
	d.edit(", confidence: 0.3", "detect: {confidence: 0.26}")
	check()
	require.NoError(t, d.Stop(syscall.SIGTERM))
	d.start()
	programtest.Until(t, d.received, "gate/available online")
	check()
	d.set("threshold", "reset", "0.3")
	d.check("threshold", "0.3", "{}")
	d.edit(", confidence: 0.35", "detect: {confidence: 0.26}")
	d.check("threshold", "0.35", "{}")
	require.NoError(t, d.Stop(syscall.SIGTERM))
}

// TestRemoteClassesGoBeforeTheFile: classes that were set remotely replace those of the file, instead of leaving what both have.
func TestRemoteClassesGoBeforeTheFile(t *testing.T) {
	t.Parallel()
	const kept = `{"belt":{"labels":["washer"]}}`
	d := startRemoteDaemon(t, "", "detect: {classes: [gear]}")
	programtest.Until(t, d.received, "belt/labels/state gear")
	programtest.Until(t, d.received, "belt/detections")
	check := func() {
		t.Helper()
		d.check("labels", "washer", kept)
		labels := map[string]bool{}
		for len(labels) == 0 {
			labels, _ = d.detected(5)
		}
		require.Equal(t, map[string]bool{"washer": true}, labels)
	}
	d.set("labels", "washer", "washer")
	check()
	d.edit("", "detect: {classes: [nut]}")
	check()
	require.NoError(t, d.Stop(syscall.SIGTERM))
	d.start()
	programtest.Until(t, d.received, "gate/available online")
	check()
	d.set("labels", "", "nut")
	d.check("labels", "nut", "{}")
	require.NoError(t, d.Stop(syscall.SIGTERM))
}

// TestAnEmptySetOfClassesIsReported: the model has none of the classes that an earlier run was told to report.
func TestAnEmptySetOfClassesIsReported(t *testing.T) {
	t.Parallel()
	d := &remoteDaemon{t: t, port: programtest.FreePort(t), dir: t.TempDir()}
	programtest.Mosquitto(t, d.port)
	d.received = programtest.Subscribe(t, d.port, "edge-infer/gate/#")
	d.write("", "")
	require.NoError(t, os.MkdirAll(filepath.Join(d.dir, "spool"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, "spool", "remote.json"), []byte(`{"belt":{"labels":["cat"]}}`), 0o600))
	d.start()
	const reason = "no detections are reported: the model has no class named cat"
	d.Logged("level=WARN msg=\"" + reason)
	programtest.Until(t, programtest.Subscribe(t, d.port, "edge-infer/gate/status"), reason)
	d.check("labels", "cat", `{"belt":{"labels":["cat"]}}`)
	labels, _ := d.detected(3)
	require.Empty(t, labels)
	d.set("labels", "", "*")
	require.Eventually(t, func() bool {
		retained, err := exec.Command(testtool.Program(t, "mosquitto_sub"), "-p", fmt.Sprint(d.port), "-t", "edge-infer/gate/status", "-C",
			"1").Output()
		return err == nil && len(retained) > 0 && !strings.Contains(string(retained), reason)
	}, programtest.Patience, 100*time.Millisecond)
	require.NoError(t, d.Stop(syscall.SIGTERM))
}

// TestAReloadKeepsRemoteValues: a camera that captures anew stays off, and its interval is the remotely set one until that is withdrawn.
func TestAReloadKeepsRemoteValues(t *testing.T) {
	t.Parallel()
	d := startRemoteDaemon(t, "", "")
	programtest.Until(t, d.received, "belt/detections")
	d.set("detect", "OFF", "OFF")
	d.set("interval", "7", "7")
	d.edit(", interval: 3, max_pixels: 1000000", "")
	d.check("interval", "7", `{"belt":{"detect":false,"interval":7}}`)
	d.check("detect", "OFF", `{"belt":{"detect":false,"interval":7}}`)
	d.set("interval", "", "3")
	d.set("detect", "ON", "ON")
	programtest.Until(t, d.received, "belt/detections")
	require.NoError(t, d.Stop(syscall.SIGTERM))
}

// TestACameraThatIsAwayIsSaidToBe kills a camera in the running program and brings it back.
func TestACameraThatIsAwayIsSaidToBe(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	received := programtest.Subscribe(t, port, "edge-infer/gate/+/available")
	address := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	stop, _ := mjpeg(t, address)
	p := programtest.Start(t, "--model", "demo", "--camera", "front=http://"+address+"/", "--mqtt", fmt.Sprintf("127.0.0.1:%d", port),
		"--name", "gate",
		"--json")
	programtest.Until(t, received, "front/available online")
	stop()
	programtest.Until(t, received, "front/available offline")
	mjpeg(t, address)
	programtest.Until(t, received, "front/available online")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
