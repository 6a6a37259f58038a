package daemon

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// Three cameras on two GPUs: each device gets an engine of its own, cameras are dealt out in turn, and no frame of a file is lost.
func TestCamerasOnSeveralDevices(t *testing.T) {
	t.Parallel()
	environment, model := programtest.StandInGPU(t)
	file := programtest.Video(t, 12)
	args := []string{"--model", model, "--engine", "tensorrt", "--gpu", "0,1", "--mqtt", "off", "--json"}
	for i := range 3 {
		args = append(args, "--camera", fmt.Sprintf("cam%d=%s", i, file))
	}
	p := programtest.StartWith(t, append(environment, "FAKE_CUDA=devices=2,capability=87"), args...)
	frames, stats := p.Rest()
	require.NoError(t, p.Wait())
	assert.Len(t, frames, 3*12)
	devices := map[string]int{}
	for _, camera := range stats.Cameras {
		assert.EqualValues(t, 12, camera.Inferred)
		devices[camera.Hardware]++
	}
	assert.Equal(t, map[string]int{"GPU 0, Fake GPU 0 (sm_87)": 2, "GPU 1, Fake GPU 1 (sm_87)": 1}, devices)
}

func TestNoDeviceNumbers(t *testing.T) {
	for _, device := range []string{"", "x", "-1", "0,", "1,1", "all,1"} {
		cmd := programtest.Command(t, "--camera", "demo", "--gpu", device)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.Error(t, cmd.Run())
		assert.Contains(t, stderr.String(), "engine.gpu")
		assert.Equal(t, 2, cmd.ProcessState.ExitCode())
	}
}
