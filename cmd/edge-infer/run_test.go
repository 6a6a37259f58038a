package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// run accepts cameras as arguments, beside those of --camera.
func TestRunAcceptsCamerasAsArguments(t *testing.T) {
	t.Parallel()
	output := programtest.Output(t, "run", "left=demo?width=160&height=120", "--camera", "right=demo?width=160&height=120&seed=2",
		"--frames", "4", "--mqtt", "off", "--json")
	cameras := map[string]bool{}
	decoder := json.NewDecoder(bytes.NewReader(output))
	for decoder.More() {
		var line struct{ Camera string }
		require.NoError(t, decoder.Decode(&line))
		cameras[line.Camera] = true
	}
	require.True(t, cameras["left"] || cameras["right"], string(output))
	output, err := programtest.Command(t, "run", "gopher://nowhere", "--mqtt", "off").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "gopher://nowhere: unknown scheme")
}
