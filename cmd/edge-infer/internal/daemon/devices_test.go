package daemon

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
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

func TestDeviceNumbers(t *testing.T) {
	environment, _ := programtest.StandInGPU(t)
	for _, entry := range append(environment, "FAKE_CUDA=devices=2") {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	c := config.Default()
	for device, want := range map[string][]int{"0": {0}, "7": {7}, "1, 0": {1, 0}, "all": {0, 1}} {
		c.Engine.Device = device
		numbers, err := deviceNumbers(c)
		require.NoError(t, err)
		assert.Equal(t, want, numbers)
	}
	c.Engine.Device = "0,2"
	_, err := deviceNumbers(c)
	require.EqualError(t, err, "--gpu 0,2: there is no GPU 2, this machine has 2 (edge-infer devices lists them)")
	t.Setenv("FAKE_CUDA", "devices=0")
	_, err = deviceNumbers(c)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	c.Engine.Device = "all"
	numbers, err := deviceNumbers(c)
	require.NoError(t, err, "automatic choice finds another backend")
	assert.Equal(t, []int{0}, numbers)

	for _, device := range []string{"", "x", "-1", "0,", "1,1", "all,1"} {
		cmd := programtest.Command(t, "--camera", "demo", "--gpu", device)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.Error(t, cmd.Run())
		assert.Contains(t, stderr.String(), "engine.device")
		assert.Equal(t, 2, cmd.ProcessState.ExitCode())
	}
}

type noSource struct{ pipeline.Source }

func TestDevicesDealCamerasOut(t *testing.T) {
	l := &devices{all: []*device{{}, {}}}
	var cameras []pipeline.Camera
	for range 5 {
		camera := pipeline.Camera{Source: &noSource{}}
		l.put(camera.Source, l.choose())
		cameras = append(cameras, camera)
	}
	parts := l.cut(cameras)
	assert.Equal(t, []pipeline.Camera{cameras[0], cameras[2], cameras[4]}, parts[l.all[0]])
	assert.Equal(t, []pipeline.Camera{cameras[1], cameras[3]}, parts[l.all[1]])
	// The first device has lost two cameras: it gets the next one.
	l.cut([]pipeline.Camera{cameras[1], cameras[2], cameras[3]})
	assert.Same(t, l.all[0], l.choose())
}
