package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
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
	require.NoError(t, exec.Command(programtest.Tool(t, "mosquitto_pub"), "-p", fmt.Sprint(port), "-t", "edge-infer/gate/belt/detect/set",
		"-m", "OFF").Run())
	programtest.Until(t, received, "belt/detect/state OFF")
	require.NoError(t, p.Stop(syscall.SIGTERM))
	programtest.Until(t, received, "gate/available stopped")

	p = programtest.StartWith(t, state, arguments...)
	programtest.Until(t, received, "gate/available online")
	before := programtest.Until(t, received, "belt/available online") // images come
	require.Empty(t, programtest.Payloads(before, "edge-infer/gate/belt/detections"))
	require.NotContains(t, programtest.Payloads(before, "edge-infer/gate/belt/detect/state"), "ON")
	require.NoError(t, exec.Command(programtest.Tool(t, "mosquitto_pub"), "-p", fmt.Sprint(port), "-t", "edge-infer/gate/belt/detect/set",
		"-m", "ON").Run())
	programtest.Until(t, received, "belt/detections")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// TestAReloadKeepsWhatIsSwitchedOff: a camera that is made anew stays off, and a control that the configuration says something new of
// follows it.
func TestAReloadKeepsWhatIsSwitchedOff(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	write := func(uri string, interval int) {
		text := fmt.Sprintf("name: gate\nmqtt: {url: 'tcp://127.0.0.1:%d'}\ncameras: [{name: belt, uri: '%s', interval: %d}]\n", port, uri,
			interval)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	publish := func(control, value string) {
		require.NoError(t, exec.Command(programtest.Tool(t, "mosquitto_pub"), "-p", fmt.Sprint(port), "-t",
			"edge-infer/gate/belt/"+control+"/set", "-m", value).Run())
	}
	write("demo?fps=10&width=320&height=240", 1)
	received := programtest.Subscribe(t, port, "edge-infer/gate/#")
	p := programtest.Start(t, "--config", path, "--json")
	programtest.Until(t, received, "belt/detections")
	publish("detect", "OFF")
	programtest.Until(t, received, "belt/detect/state OFF")
	publish("interval", "7")
	programtest.Until(t, received, "belt/interval/state 7")

	write("demo?fps=10&width=320&height=240&seed=2", 3)
	p.Logged(`msg="configuration changed"`)
	seen := programtest.Until(t, received, "belt/interval/state 3")
	require.NotContains(t, programtest.Payloads(seen, "edge-infer/gate/belt/detect/state"), "ON")
	publish("detect", "ON")
	seen = programtest.Until(t, received, "belt/detections")
	require.Contains(t, programtest.Payloads(seen, "edge-infer/gate/belt/detect/state"), "ON", "no detections before")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// TestACameraThatIsAwayIsSaidToBe kills a camera in the running program and brings it back.
func TestACameraThatIsAwayIsSaidToBe(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	received := programtest.Subscribe(t, port, "edge-infer/gate/+/available")
	address := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	stop, _ := mjpeg(t, address)
	p := programtest.Start(t, "--camera", "front=http://"+address+"/", "--mqtt", fmt.Sprintf("127.0.0.1:%d", port), "--name", "gate",
		"--json")
	programtest.Until(t, received, "front/available online")
	stop()
	programtest.Until(t, received, "front/available offline")
	mjpeg(t, address)
	programtest.Until(t, received, "front/available online")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
