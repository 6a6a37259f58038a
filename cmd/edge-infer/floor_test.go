package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// The floor program knows the arguments of the kernels and the engine's shim: it is built, and runs the kernels themselves where a GPU
// exists in memory only.
func TestFloorRuns(t *testing.T) {
	programtest.Long(t)
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	dir := t.TempDir()
	floor, plan := filepath.Join(dir, "floor"), filepath.Join(dir, "parts.plan")
	output, err := exec.Command(programtest.Project("engine/tensorrt/baseline/build"), floor).CombinedOutput()
	require.NoError(t, err, "%s", output)
	output, err = programtest.CommandWith(t, environment, "build", model, "--precision", "fp32", "-o", plan).CombinedOutput()
	require.NoError(t, err, "%s", output)
	kernels := filepath.Join(dir, "kernels.ptx")
	require.NoError(t, os.WriteFile(kernels, []byte(preprocess.PTX()), 0o600))
	libraries, err := filepath.Glob(filepath.Join(filepath.Dir(programtest.FakeTensorRT(t, 100300)), "libnvinfer.so*"))
	require.NoError(t, err)
	require.NotEmpty(t, libraries)
	command := exec.Command(floor, libraries[0], plan, kernels, "320", "240", "0.05", "mapped",
		"confidence=0.25", "rate=100", "paced=0.05")
	command.Env = append(append(os.Environ(), environment...), "LD_LIBRARY_PATH="+filepath.Dir(programtest.FakeDriver(t)))
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err = command.Output()
	require.NoError(t, err, stderr.String())
	var found struct {
		What   string
		Filter bool
		Rate   float64 `json:"frames_per_second"`
		P50    float64 `json:"latency_us_p50"`
	}
	require.NoError(t, json.Unmarshal(output, &found), "%s", output)
	require.Equal(t, "floor", found.What)
	require.True(t, found.Filter)
	require.Positive(t, found.Rate)
	require.Positive(t, found.P50)
}
