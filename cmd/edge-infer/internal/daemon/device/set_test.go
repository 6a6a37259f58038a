package device

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
)

func TestMain(m *testing.M) { programtest.Main(m, nil) }

func TestDeviceNumbers(t *testing.T) {
	environment, _ := programtest.StandInGPU(t)
	for _, entry := range append(environment, "FAKE_CUDA=devices=2") {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	c := config.Default()
	for device, want := range map[string][]int{"0": {0}, "7": {7}, "1, 0": {1, 0}, "all": {0, 1}} {
		c.Engine.GPU = device
		numbers, err := network.GPUs(&c.Engine)
		require.NoError(t, err)
		assert.Equal(t, want, numbers)
	}
	c.Engine.GPU = "0,2"
	_, err := network.GPUs(&c.Engine)
	require.EqualError(t, err, "--gpu 0,2: there is no GPU 2, this machine has 2 (edge-infer devices lists them)")
	t.Setenv("FAKE_CUDA", "devices=0")
	_, err = network.GPUs(&c.Engine)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	c.Engine.GPU = "all"
	numbers, err := network.GPUs(&c.Engine)
	require.NoError(t, err, "automatic choice finds another backend")
	assert.Equal(t, []int{0}, numbers)
}

type noSource struct{ pipeline.Source }

func TestCamerasAreSpreadOverDevices(t *testing.T) {
	group, other := new(site.Group), new(site.Group)
	other.Network.Model.Path = "other.onnx"
	l := &Set{Devices: Devices{All: []*Device{{group: group}, {group: group}, {group: other}}}}
	var cameras []pipeline.Camera
	for range 5 {
		camera := pipeline.Camera{Source: &noSource{}}
		l.Put(camera.Source, l.Choose(&group.Network))
		cameras = append(cameras, camera)
	}
	parts := l.cut(cameras)
	assert.Equal(t, []pipeline.Camera{cameras[0], cameras[2], cameras[4]}, parts[l.All[0]])
	assert.Equal(t, []pipeline.Camera{cameras[1], cameras[3]}, parts[l.All[1]])
	// The first device has lost two cameras: it gets the next one.
	l.cut([]pipeline.Camera{cameras[1], cameras[2], cameras[3]})
	assert.Same(t, l.All[0], l.Choose(&group.Network))
	assert.Same(t, l.All[2], l.Choose(&other.Network), "the one that runs its model")
}
