package engine

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// Auxiliary inputs request boxes in input pixels, of an image that is not padded.
func TestAuxiliaryTensors(t *testing.T) {
	img := &ImageInput{Width: 32, Height: 64}
	var names []string
	for _, c := range []struct {
		in   TensorInfo
		want []float64
	}{
		{TensorInfo{Name: "orig_target_sizes", Type: Int64, Shape: []int64{-1, 2}}, []float64{32, 64}},
		{TensorInfo{Name: "pixel_mask", Type: Int64, Shape: []int64{-1, 1, 2}}, []float64{1, 1}},
		{TensorInfo{Name: "im_shape", Type: Float32, Shape: []int64{-1, 2}}, []float64{64, 32}},
		{TensorInfo{Name: "scale_factor", Type: Float32, Shape: []int64{1, 2}}, []float64{1, 1}},
	} {
		require.True(t, IsAuxiliary(c.in), c.in.Name)
		got, ok := AuxiliaryTensor(c.in, img)
		require.True(t, ok, c.in.Name)
		require.Equal(t, int64(len(c.want)), Elements(got.Shape), c.in.Name)
		require.Len(t, got.Data, len(c.want)*c.in.Type.Size(), c.in.Name)
		for i, want := range c.want {
			if c.in.Type == Float32 {
				require.Equal(t, float32(want), math.Float32frombits(binary.LittleEndian.Uint32(got.Data[4*i:])), c.in.Name)
			} else {
				require.Equal(t, int64(want), int64(binary.LittleEndian.Uint64(got.Data[8*i:])), c.in.Name)
			}
		}
		names = append(names, c.in.Name)
	}
	require.Equal(t, names, AuxiliaryInputs())
	for _, other := range []TensorInfo{
		{Name: "scale_factor", Type: Int64, Shape: []int64{1, 2}},
		{Name: "im_shape", Type: Float32, Shape: []int64{2}},
		{Name: "im_shape", Type: Float32, Shape: []int64{1, 3}},
		{Name: "image", Type: Float32, Shape: []int64{1, 2}},
	} {
		require.False(t, IsAuxiliary(other), "%v", other)
	}
	_, ok := AuxiliaryTensor(TensorInfo{Name: "pixel_mask", Type: Int64, Shape: []int64{-1, 1 << 12, 1 << 12}}, img)
	require.False(t, ok)
}
