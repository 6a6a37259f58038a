package tritoncheck

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What export writes is in Triton's published form, and the server loads it as it is and warms it up.
func TestTheServerLoadsWhatExportWrites(t *testing.T) {
	repository := exported(t, "--instances", "2", "--queue-delay", "1ms", "--versions", "2")
	require.Equal(t, "demo onnxruntime_onnx 8 [4, 8] {}\n", python(t, "parse.py", filepath.Join(repository, "demo/config.pbtxt")))
	edge(t, "export", "triton", "--model", "demo", "--engine", "onnxruntime=cpu", "--repository", repository)
	s := start(t, repository, "--log-verbose", "1")
	require.Contains(t, s.log.String(), "successfully loaded 'demo'")
	require.Contains(t, s.log.String(), "zeros-8", "the warm-up")
	for _, version := range []string{"demo/1", "demo/2"} {
		about := edge(t, "inspect", "--engine", "triton="+s.at("grpc", version))
		require.Contains(t, about, "labels        6: bolt, nut, washer, gear, bearing, spring")
		require.Contains(t, strings.Join(strings.Fields(about), " "), "input images float32 [-1 3 416 416]")
	}
}

// A repository of plans is in the same form, and the server takes its configuration and runs the warm-up. None here has TensorRT's backend:
// that is all that the server finds wrong, and one in its place finds the plan of its GPU.
func TestARepositoryOfPlansIsInTritonsForm(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "gpu.plan")
	require.NoError(t, os.WriteFile(plan, append([]byte("ftrt"), make([]byte, 64)...), 0o600))
	repository := exported(t, "--plans", "8.7="+plan+",8.9="+plan)
	require.Equal(t, "demo tensorrt_plan 8 [4, 8] {'8.7': 'model-8.7.plan', '8.9': 'model-8.9.plan'}\n",
		python(t, "parse.py", filepath.Join(repository, "demo/config.pbtxt")))
	s := start(t, repository, "--exit-on-error=false", "--strict-readiness=false")
	require.Contains(t, s.log.String(), "failed to load 'demo' version 1: Invalid argument: unable to find backend library for backend 'tensorrt'")
	s.kill()

	backends := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(installed(t), "backends/python"), filepath.Join(backends, "python")))
	instead, err := os.ReadFile("plans.py")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(backends, "tensorrt"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(backends, "tensorrt/model.py"), instead, 0o600))
	s = start(t, repository, "--backend-directory", backends, "--log-verbose", "1")
	require.Contains(t, s.log.String(), "plan of 8.9: model-8.9.plan")
	require.Contains(t, s.log.String(), "successfully loaded 'demo'")
	require.Contains(t, s.log.String(), "zeros-8", "the warm-up")
	about := edge(t, "inspect", "--engine", "triton="+s.at("grpc", "demo"))
	require.Contains(t, about, "labels        6: bolt, nut, washer, gear, bearing, spring")
}
