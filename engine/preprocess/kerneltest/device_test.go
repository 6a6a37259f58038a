package kerneltest

import (
	"image"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// TestDeviceParts: a part of an NV12 image in the GPU's memory, whose planes are apart, gives the input of a copy of that part.
func TestDeviceParts(t *testing.T) {
	g := open(t)
	in := &engine.ImageInput{Type: engine.Float32, Channels: 3, Width: 64, Height: 48}
	const width, height, stride = 90, 70, 96
	source := g.host(t, stride*height*3/2)
	noise(source.Data, 1)
	whole := (&enginetest.DeviceMemory{Data: source.Data}).Image(engine.NV12, width, height, stride)
	whole.Device.Address, whole.Device.Chroma = source.Address, source.Address+stride*height
	part := image.Rect(6, 10, 80, 66)
	onHost := engine.Image{Data: source.Data, Width: width, Height: height, Stride: stride, Format: engine.NV12}
	copied := g.host(t, onHost.PartBytes(part))
	same, err := onHost.CopyPart(copied.Data, part)
	require.NoError(t, err)
	letterboxed := func(im *engine.Image, address uint64) []byte {
		output := g.host(t, in.ImageBytes())
		arguments, _ := preprocess.NewLetterboxArguments(im, address, in, output.Address)
		require.NoError(t, g.stream.Launch(g.imageKernel(in, &arguments)))
		require.NoError(t, g.stream.Synchronize())
		return output.Data
	}
	view := whole.Part(part)
	assert.Equal(t, letterboxed(&same, copied.Address), letterboxed(&view, 0))
}
