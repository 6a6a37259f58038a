package engine_test

import (
	"errors"
	"image"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
)

// TestDeviceImages: parts and copies of an image in a GPU's memory are those of the same image in host memory, parts of parts included.
func TestDeviceImages(t *testing.T) {
	const width, height = 40, 30
	for format := engine.BGR; format <= engine.GRAY8; format++ {
		stride := format.RowBytes(width) + 7
		memory := &enginetest.DeviceMemory{Data: make([]byte, stride*format.Rows(height))}
		for i := range memory.Data {
			memory.Data[i] = byte(i * 31 >> 2)
		}
		onHost := engine.Image{Data: memory.Data, Width: width, Height: height, Stride: stride, Format: format}
		onDevice := memory.Image(format, width, height, stride)
		require.NoError(t, onDevice.Check())
		require.True(t, onDevice.HasParts())
		outer := onDevice.Part(image.Rect(4, 2, 36, 28))
		require.NoError(t, outer.Check())
		inner := outer.Part(image.Rect(2, 2, 22, 18))
		part := image.Rect(6, 4, 26, 20)
		want, err := onHost.CopyPart(make([]byte, onHost.PartBytes(part)), part)
		require.NoError(t, err)
		got, err := inner.ToHost(make([]byte, inner.HostBytes()))
		require.NoError(t, err)
		assert.Equal(t, want, got, "%v", format)
		assert.Equal(t, len(want.Data), memory.Copied)

		memory.Fail = errors.New("the GPU is gone")
		_, err = onDevice.ToHost(make([]byte, onDevice.HostBytes()))
		require.ErrorIs(t, err, memory.Fail)
		onDevice.Device.Address = 0
		require.ErrorIs(t, onDevice.Check(), engine.ErrShape)
	}
	nv12 := (&enginetest.DeviceMemory{Data: make([]byte, 96)}).Image(engine.NV12, 8, 8, 8)
	nv12.Device.Chroma = 0
	require.ErrorIs(t, nv12.Check(), engine.ErrShape)
}

// TestCopyEvery: every n-th row of each plane is copied, the one in the middle, from either memory.
func TestCopyEvery(t *testing.T) {
	for format := engine.BGR; format <= engine.GRAY8; format++ {
		const width, height = 16, 22
		stride := format.RowBytes(width) + 8
		memory := &enginetest.DeviceMemory{Data: make([]byte, stride*format.Rows(height))}
		for i := range memory.Data {
			memory.Data[i] = byte(i / stride)
		}
		onDevice := memory.Image(format, width, height, stride)
		onHost := onDevice
		onHost.Data, onHost.Device = memory.Data, engine.Device{}
		for step := 1; step <= height/2; step++ {
			rows := onHost.RowsOf(step)
			size := format.RowBytes(width) * format.Rows(rows)
			memory.Copied = 0
			got, err := onDevice.CopyEvery(make([]byte, size), step)
			require.NoError(t, err)
			same, err := onHost.CopyEvery(make([]byte, size), step)
			require.NoError(t, err)
			assert.Equal(t, same, got, "%v, %d", format, step)
			assert.Equal(t, size, memory.Copied)
			require.NoError(t, got.Check())
			for y := range format.Rows(rows) {
				want := y*step + step/2
				if y >= rows { // of the second plane
					want = height + (y-rows)*step + step/2
				}
				require.Equal(t, byte(want), got.Data[y*got.Stride], "%v, %d", format, step)
			}
		}
	}
}
