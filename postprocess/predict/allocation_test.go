//go:build !race

package predict

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
)

// The race detector allocates on its own.
func TestNoAllocations(t *testing.T) {
	belt := &scene.Scene{Width: 320, Height: 240, Seed: 1}
	require.NoError(t, belt.Open())
	for name, open := range map[string]func() (*Network, error){
		"fake": func() (*Network, error) {
			e := newScripted(2)
			e.batches = make([]int, 0, 1<<16)
			return Wrap(unmoved{e}, Decoding{})
		},
		"demo model": func() (*Network, error) {
			o := Options{Backend: "onnxruntime=cpu", Log: slog.New(slog.DiscardHandler)}
			o.Threads, o.MaxBatch, o.Slots = 1, 2, 2
			return Open(t.Context(), o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := open()
			require.NoError(t, err)
			defer n.Close()
			images := make([]engine.Image, 2)
			for i := range images {
				buffer, err := n.Alloc(320 * 240 * 3)
				require.NoError(t, err)
				_, err = belt.Draw(90*i, buffer.Data, 320*3, nil)
				require.NoError(t, err)
				images[i] = engine.Image{Data: buffer.Data, Width: 320, Height: 240, Stride: 320 * 3, Format: engine.BGR}
			}
			seen := 0
			frame := func() {
				for slot := range 2 {
					if err := n.Submit(slot, images); err != nil {
						t.Error(err)
					}
				}
				for slot := range 2 {
					result, err := n.Wait(slot)
					if err != nil {
						t.Error(err)
						return
					}
					seen += len(result.Results[0].Detections) + len(result.Results[1].Detections)
				}
			}
			for range 3 {
				frame()
			}
			require.Zero(t, testing.AllocsPerRun(50, frame))
			require.Positive(t, seen)
		})
	}
}

// unmoved answers the same two boxes for every image, without the garbage that the scripted engine makes.
type unmoved struct{ *scripted }

func (u unmoved) Wait(slot int) (*engine.Result, error) {
	r := &u.result[slot]
	if len(r.Outputs) > 0 {
		return r, nil
	}
	kept := u.slots[slot]
	u.slots[slot] = []engine.Image{shows(50, 60), shows(70)}
	defer func() { u.slots[slot] = kept }()
	return u.scripted.Wait(slot)
}
