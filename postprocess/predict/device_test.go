package predict

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
)

// reading is an engine that reads images in the memory of one GPU.
type reading struct {
	*scripted
	gpu int
}

func (r reading) ReadsDevice(gpu int) bool { return gpu == r.gpu }

// TestDeviceImages: an engine is given an image in a GPU's memory as it is if it reads that GPU, otherwise a copy in its own memory.
func TestDeviceImages(t *testing.T) {
	for name, test := range map[string]struct {
		engine func(s *scripted) engine.Engine
		copied bool
	}{
		"host only": {func(s *scripted) engine.Engine { return s }, true},
		"this GPU":  {func(s *scripted) engine.Engine { return reading{s, 1} }, false},
		"another":   {func(s *scripted) engine.Engine { return reading{s, 0} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScripted(2)
			n, err := Wrap(test.engine(s), Decoding{})
			require.NoError(t, err)
			defer n.Close()
			memory := &enginetest.DeviceMemory{Data: make([]byte, 16*12*3/2), Number: 1}
			for i := range memory.Data {
				memory.Data[i] = byte(i)
			}
			img := memory.Image(engine.NV12, 16, 12, 16)
			for range 2 { // the second request uses the memory again
				require.NoError(t, n.Submit(0, []engine.Image{img, img}))
				for i := range s.slots[0] {
					given := &s.slots[0][i]
					require.Equal(t, test.copied, !given.OnDevice())
					if !test.copied { // the engine's outputs come from its first bytes
						*given, err = given.ToHost(make([]byte, given.HostBytes()))
						require.NoError(t, err)
					}
					assert.Equal(t, memory.Data, given.Data)
				}
				_, err = n.Wait(0)
				require.NoError(t, err)
			}
			memory.Fail = errors.New("the GPU is gone")
			err = n.Submit(0, []engine.Image{img})
			if test.copied {
				require.ErrorIs(t, err, memory.Fail)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
