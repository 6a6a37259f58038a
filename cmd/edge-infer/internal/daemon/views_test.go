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

// TestCamerasHaveModelsAndTilesOfTheirOwn: one daemon runs them all, each camera's detections are its own model's, status and totals say
// what looks at whom, and a reload moves cameras among what is open or restarts for what is not.
func TestCamerasHaveModelsAndTilesOfTheirOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, labels := filepath.Join(dir, "other.onnx"), filepath.Join(dir, "other.txt")
	require.NoError(t, os.WriteFile(other, demo.Model(), 0o600))
	require.NoError(t, os.WriteFile(labels, []byte("eins\nzwei\ndrei\nvier\nfuenf\nsechs\n"), 0o600))
	port := programtest.FreePort(t)
	const camera = "  - {name: %s, uri: 'demo?width=480&height=360&fps=10'%s}\n"
	write := func(a, b, c string) {
		text := fmt.Sprintf("name: gate\nmqtt: {listen: '127.0.0.1:%d'}\ndetect: {classes: [washer, gear]}\ncameras:\n", port)
		text += fmt.Sprintf(camera, "a", a) + fmt.Sprintf(camera, "b", b) + fmt.Sprintf(camera, "c", c)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "edge-infer.yaml"), []byte(text), 0o600))
	}
	model := fmt.Sprintf(", model: {path: %s, labels: %s}, confidence: 0.3", other, labels)
	write("", ", tile: 320, overlap: 0.25", model)
	p := programtest.Start(t, "--config", filepath.Join(dir, "edge-infer.yaml"), "--json")
	seen := map[string]map[string]bool{}
	look := func(camera string, known ...string) {
		t.Helper()
		for len(seen[camera]) == 0 {
			f, more := p.Frame()
			require.True(t, more, "%s", p.Stderr)
			for _, d := range f.Detections {
				if seen[f.Camera] == nil {
					seen[f.Camera] = map[string]bool{}
				}
				var found struct{ Label string }
				require.NoError(t, json.Unmarshal(d, &found))
				seen[f.Camera][found.Label] = true
			}
		}
		for label := range seen[camera] {
			require.Contains(t, known, label, camera)
		}
	}
	own := []string{"eins", "zwei", "drei", "vier", "fuenf", "sechs"}
	look("a", "washer", "gear")
	look("b", "washer", "gear")
	look("c", own...)
	programtest.Until(t, programtest.Subscribe(t, port, "edge-infer/gate/status"), `"model":"`+other+`"`)
	programtest.Until(t, programtest.Subscribe(t, port, "edge-infer/gate/status"), `"model":"demo in tiles of 320"`)

	write(", tile: 320, overlap: 0.25", "", model) // both ways are open
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	logged := func(text string) {
		t.Helper()
		require.Eventually(t, func() bool { return strings.Contains(p.Stderr.String(), text) }, programtest.Patience, 20*time.Millisecond, "%s",
			p.Stderr)
	}
	logged(`msg="configuration changed" cameras=3 undisturbed=1`)
	clear(seen)
	look("a", "washer", "gear")
	look("b", "washer", "gear")
	look("c", own...)
	write(", tile: 352", "", model) // this one is not
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	logged("restarting")
	_, stats := p.Rest()
	require.Len(t, stats.Cameras, 3)
	clear(seen)
	look("a", "washer", "gear")
	look("c", own...)
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// TestRunTakesWhatInferTakes: tiles, ensembles and augmentation are in force, and what cannot be is refused before anything is opened.
func TestRunTakesWhatInferTakes(t *testing.T) {
	t.Parallel()
	p := programtest.Start(t, "--camera", "demo?width=480&height=360&fps=5", "--mqtt", "off", "--frames", "12", "--json",
		"--tile", "320", "--tile-merge", "wbf", "--ensemble", "demo", "--weights", "2,1", "--augment", "flip")
	frames, stats := p.Rest()
	require.NoError(t, p.Wait())
	found := 0
	for _, f := range frames {
		found += len(f.Detections)
	}
	require.Positive(t, found)
	require.Zero(t, stats.Cameras[0].Failed, "%s", p.Stderr)
	output, err := programtest.Command(t, "run", "--camera", "demo", "--mqtt", "off", "--tile", "31").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "inference.tile: tiles of 31 pixels")
}
