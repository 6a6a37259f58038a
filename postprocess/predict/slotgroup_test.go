package predict

import (
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
)

// TestPartsAreUsedAtOnce: two goroutines see the same with the same network.
func TestPartsAreUsedAtOnce(t *testing.T) {
	belt := &scene.Scene{Width: 320, Height: 240, Seed: 1}
	require.NoError(t, belt.Open())
	o := Options{Backend: "onnxruntime=cpu", Log: slog.New(slog.DiscardHandler)}
	o.Threads, o.Slots = 1, 4
	n, err := Open(t.Context(), o)
	require.NoError(t, err)
	parts, err := SplitSlots(n, 2)
	require.NoError(t, err)
	data := make([]byte, 320*240*3)
	_, err = belt.Draw(90, data, 320*3, nil)
	require.NoError(t, err)
	images := []engine.Image{{Data: data, Width: 320, Height: 240, Stride: 320 * 3, Format: engine.BGR}}
	seen := make([]int, len(parts))
	var group sync.WaitGroup
	for i, p := range parts {
		group.Go(func() {
			for slot := range 2 * 5 {
				if err := p.Submit(slot%2, images); err != nil {
					t.Error(err)
					return
				}
				result, err := p.Wait(slot % 2)
				if err != nil {
					t.Error(err)
					return
				}
				seen[i] += len(result.Results[0].Detections)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	require.Positive(t, seen[0])
	require.Equal(t, seen[0], seen[1])
	require.ErrorIs(t, n.Submit(0, images), engine.ErrClosed)
}

// TestPartsOfANetwork: each has slots and a way of decoding of its own, and the last one closes the network.
func TestPartsOfANetwork(t *testing.T) {
	e := newScripted(2)
	n, err := Wrap(e, Decoding{})
	require.NoError(t, err)
	_, err = SplitSlots(n, 3)
	require.ErrorContains(t, err, "slots cannot be divided by 3")
	slots := n.Slots()
	parts, err := SplitSlots(n, slots)
	require.NoError(t, err)
	require.Equal(t, 1, parts[0].Slots())
	require.Equal(t, []*Network{n}, Networks(parts[1]))

	look := func(p *SlotGroup, value byte) int {
		require.NoError(t, p.Submit(0, []engine.Image{shows(value)}))
		result, err := p.Wait(0)
		require.NoError(t, err)
		return len(result.Results[0].Detections)
	}
	seen := look(parts[0], 50)
	require.Positive(t, seen)
	require.NoError(t, parts[1].Tune(Decoding{MinScore: 0.99}))
	require.Zero(t, look(parts[1], 50), "it asks for more")
	require.Equal(t, seen, look(parts[0], 50), "the other goes on as it was")

	for _, wrong := range []int{-1, 1} {
		require.ErrorContains(t, parts[0].Submit(wrong, []engine.Image{shows(50)}), "there are slots 0 to 0")
		_, err = parts[0].Wait(wrong)
		require.ErrorIs(t, err, engine.ErrShape)
	}
	require.NoError(t, parts[0].Close())
	require.NoError(t, parts[0].Close(), "closed twice it counts once")
	require.Equal(t, 0, look(parts[1], 50))
	require.NoError(t, parts[1].Tune(Decoding{}))
	require.Equal(t, seen, look(parts[1], 50))
	for _, p := range parts[1:] {
		require.NoError(t, p.Close())
	}
	require.Equal(t, 1, e.closed)
}
