package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestANetworkThatDoesNotReturnLeavesTheOthersAlone: while a request of one network takes for ever, the camera of the other network, on the
// same GPU, goes on. The network is opened again, and the program ends whatever hangs.
func TestANetworkThatDoesNotReturnLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	dir := t.TempDir()
	held, file := filepath.Join(dir, "held"), filepath.Join(dir, "edge-infer.yaml")
	text := "mqtt: {url: 'off'}\nengine: {backend: tensorrt}\ncameras:\n"
	for camera, path := range map[string]string{"healthy": model, "hanging": programtest.StandInModel(t, "held")} {
		text += fmt.Sprintf("  - {name: %s, uri: 'demo?width=320&height=240&fps=20', model: {path: %s}}\n", camera, path)
	}
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	p := programtest.StartWith(t, append(environment, "FAKE_TRT_REQUEST_HELD="+held), "run", "--config", file, "--json")
	results := func(camera string, n int) {
		t.Helper()
		for n > 0 {
			f, more := p.Frame()
			require.True(t, more, "%s", p.Stderr)
			if f.Camera == camera {
				n--
			}
		}
	}
	results("hanging", 3)
	require.NoError(t, os.WriteFile(held, nil, 0o600))
	results("healthy", 60) // three seconds; at most two requests of the other camera were in flight
	require.NoError(t, os.Remove(held))
	results("hanging", 3)

	require.NoError(t, os.WriteFile(held, nil, 0o600))
	p.Logged(`"network failed" cameras=hanging error="the network hangs: a request has not returned for`)
	results("healthy", 60)
	require.NoError(t, os.Remove(held))
	p.Logged(`"network opened" cameras=hanging`)
	results("hanging", 3)

	require.NoError(t, os.WriteFile(held, nil, 0o600))
	results("healthy", 20)
	require.NoError(t, p.Stop(syscall.SIGTERM), "the program ends although a request hangs")
}
