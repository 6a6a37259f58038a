package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestWhatIsSaidOfAServersModel is held against what the server says of it, and told as it is of a model that runs here.
func TestWhatIsSaidOfAServersModel(t *testing.T) {
	t.Parallel()
	labels := filepath.Join(t.TempDir(), "labels.txt")
	require.NoError(t, os.WriteFile(labels, []byte("a\nb\n"), 0o600))
	p := programtest.Start(t, "serve", "--engine", "onnxruntime=cpu", "--listen", "127.0.0.1:0")
	server := "triton=http://" + strings.TrimSpace(p.PrintedAfter("model demo at ")) + "/demo"
	p.Discard()
	for _, said := range []string{"--labels " + labels, "--imgsz 640", "--layout yolov5", "--layout classify"} {
		for _, command := range []string{"--camera demo --mqtt off --web off --frames 1", "inspect"} {
			var answers [2]string
			for i, engine := range []string{"onnxruntime=cpu", server} {
				c := programtest.Command(t, strings.Fields(command+" "+said+" --engine "+engine)...)
				output, err := c.CombinedOutput()
				require.Error(t, err, "%s", output)
				for line := range strings.Lines(string(output)) {
					if strings.HasPrefix(line, "edge-infer: ") || strings.HasPrefix(line, "problem ") {
						answers[i] += line
					}
				}
			}
			require.NotEmpty(t, answers[0], said)
			require.Equal(t, answers[0], answers[1], said)
		}
	}
}
