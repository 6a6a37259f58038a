package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestCamerasAreInTheOrderOfTheFile, also where two of them share a network that another does not use; a network takes one line.
func TestCamerasAreInTheOrderOfTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "site.yaml")
	require.NoError(t, os.WriteFile(file, []byte("model: {path: demo}\nengine: {backend: onnxruntime=cpu}\nmqtt: {url: 'off'}\ncameras:\n"+
		"  - {name: zeta, uri: 'demo?width=160&height=120'}\n"+
		"  - {name: alpha, uri: 'demo?width=160&height=120', tile: 96}\n"+
		"  - {name: mid, uri: 'demo?width=160&height=120'}\n"), 0o600))
	text := string(programtest.Output(t, "--config", file, "--frames", "6"))
	_, summary, found := strings.Cut(text, "\nran ")
	require.True(t, found, text)
	assert.Regexp(t, `(?s)\nzeta: .*\nalpha: .*\nmid: `, summary)
	for _, line := range strings.Split(text, "\n")[1:3] {
		assert.Regexp(t, `^(zeta, mid|alpha): model demo( in tiles of 96)? \(yolov8, input \d+x\d+\) on onnxruntime `, line)
	}
}
