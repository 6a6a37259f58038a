package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/demo"
)

// TestANetworkThatCannotBeOpenedAtTheStart: its file is damaged while the program starts. The cameras of the other network run, status has
// the fault, and the network is opened as soon as its file is right, with the classes and the line of its camera.
func TestANetworkThatCannotBeOpenedAtTheStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, labels, file := filepath.Join(dir, "other.onnx"), filepath.Join(dir, "other.txt"), filepath.Join(dir, "edge-infer.yaml")
	require.NoError(t, os.WriteFile(other, demo.Model()[:2000], 0o600))
	require.NoError(t, os.WriteFile(labels, []byte("eins\nzwei\ndrei\nvier\nfuenf\nsechs\n"), 0o600))
	port := programtest.FreePort(t)
	const camera = "  - {name: %s, uri: 'demo?width=480&height=360&fps=10'%s}\n"
	text := fmt.Sprintf("name: gate\nmqtt: {listen: '127.0.0.1:%d', discovery: true}\ncameras:\n", port)
	text += fmt.Sprintf(camera, "right", "")
	text += fmt.Sprintf(camera, "wrong", fmt.Sprintf(", model: {path: %s, labels: %s}", other, labels))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))

	p := programtest.Start(t, "--config", file, "--json")
	frame := func(camera string) (labels []string) {
		t.Helper()
		for {
			f, more := p.Frame()
			require.True(t, more, "%s", p.Stderr)
			if f.Camera != camera {
				require.NotEqual(t, "wrong", f.Camera)
				continue
			}
			for _, d := range f.Detections {
				var found struct{ Label string }
				require.NoError(t, json.Unmarshal(d, &found))
				labels = append(labels, found.Label)
			}
			return labels
		}
	}
	for range 5 {
		frame("right")
	}
	programtest.Until(t, programtest.Subscribe(t, port, "edge-infer/gate/status"), "network failed, opened again at")
	require.Contains(t, p.Stderr.String(), `msg="network not opened" cameras=wrong`)

	require.NoError(t, os.WriteFile(other, demo.Model(), 0o600))
	opened := func() bool { return strings.Contains(p.Stderr.String(), `msg="network opened" cameras=wrong`) }
	require.Eventually(t, opened, programtest.Patience, 20*time.Millisecond, "%s", p.Stderr)
	programtest.Until(t, programtest.Subscribe(t, port, "edge-infer/gate/wrong/line/belt"), "belt ")
	var found []string
	for len(found) == 0 {
		f, more := p.Frame()
		require.True(t, more, "%s", p.Stderr)
		if f.Camera == "wrong" {
			for _, d := range f.Detections {
				found = append(found, string(d))
			}
		}
	}
	for _, d := range found {
		require.Regexp(t, `"label":"(eins|zwei|drei|vier|fuenf|sechs)"`, d)
	}
	require.Contains(t, strings.Join(found, " "), `"track":`) // not all: uncertain ones begin no track
	programtest.Until(t, programtest.Subscribe(t, port, "homeassistant/device/edge-infer-gate/camera-wrong/config"), `line/belt`)
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// TestNoNetworkCanBeOpened: nothing is left that could run, which ends the program with the reason of each network, once.
func TestNoNetworkCanBeOpened(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.onnx")
	require.NoError(t, os.WriteFile(broken, demo.Model()[:2000], 0o600))
	file := filepath.Join(dir, "edge-infer.yaml")
	text := fmt.Sprintf("mqtt: {url: 'off'}\nmodel: {path: %s}\ncameras:\n  - {name: a, uri: demo}\n  - {name: b, uri: demo, tile: 320}\n", broken)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	output, err := programtest.Command(t, "run", "--config", file).CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, strings.Count(string(output), "broken.onnx"), "%s", output)
}
