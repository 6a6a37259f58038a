package device

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// TestTiledAndUntiledCamerasShareANetwork: cameras that differ in nothing but tiles use one engine.
func TestTiledAndUntiledCamerasShareANetwork(t *testing.T) {
	side := func(n int) *int { return &n }
	open := func(cameras ...config.Camera) *Set {
		c := config.Default()
		c.Engine.Backend, c.Engine.Threads, c.Cameras = "onnxruntime=cpu", 1, cameras
		s := &Set{ProbeSizes: func([]site.Camera) []engine.Size { return nil }}
		resolved := site.Resolve(c, nil)
		require.NoError(t, s.Open(t.Context(), &resolved, nil, slog.New(slog.DiscardHandler)))
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	engines := func(s *Set) int {
		seen := map[*predict.Network]bool{}
		for _, d := range s.All {
			for _, n := range predict.Networks(d.Running()) {
				seen[n] = true
			}
		}
		return len(seen)
	}
	s := open(config.Camera{Name: "a", Confidence: 0.6}, config.Camera{Name: "b", Tile: side(320)}, config.Camera{Name: "c", Tile: side(256)},
		config.Camera{Name: "d", Model: &config.Model{Path: "demo", Layout: config.Auto}, Tile: side(320)})
	require.Len(t, s.All, 4)
	require.Equal(t, 2, engines(s), "a model of a camera's own is opened for it, even where it is the same")
	for _, d := range s.All {
		require.NotNil(t, d.DeviceShare, "they share the CPU")
	}
	require.Equal(t, slotsOfOne, s.All[0].Running().Slots())
	require.Equal(t, 1, s.All[1].Running().Slots(), "tiles of an image fill both")
	require.Equal(t, tiledBatch, s.All[0].Running().Model().MaxBatch)

	alone := open(config.Camera{Name: "a"}, config.Camera{Name: "b"})
	require.Equal(t, 1, engines(alone))
	require.Equal(t, 1, alone.All[0].Running().Model().MaxBatch, "a CPU is no faster with two")
}

// TestUntakenSlotsAreClosed: slots that a group did not take are closed at the end of the run.
func TestUntakenSlotsAreClosed(t *testing.T) {
	options := predict.Options{Backend: "onnxruntime=cpu"}
	options.Threads, options.Log = 1, slog.New(slog.DiscardHandler)
	p := &prepared{group: &site.Group{}, each: []predict.Options{options}}
	g := &sharedEngines{groups: []*prepared{p, p}, common: options}
	first, err := g.each(predict.Open)(t.Context(), options)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	n := predict.Networks(first)[0]
	img := engine.Image{Data: make([]byte, 64*64*3), Width: 64, Height: 64, Stride: 64 * 3, Format: engine.BGR}
	require.NoError(t, n.Submit(0, []engine.Image{img}), "slots are left that another group may take")
	_, err = n.Wait(0)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	require.ErrorIs(t, n.Submit(0, []engine.Image{img}), engine.ErrClosed)
}
