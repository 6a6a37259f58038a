package onnxruntime_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
)

func floats(values ...float32) []byte {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data
}

func halves(bits ...uint16) []byte {
	var data []byte
	for _, v := range bits {
		data = binary.LittleEndian.AppendUint16(data, v)
	}
	return data
}

func integer(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

func truth(v bool) []byte {
	if v {
		return []byte{1}
	}
	return []byte{0}
}

func openNetwork(t *testing.T, name string) engine.Engine {
	e, err := onnxruntime.Open(enginetest.Network(t, name))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func infer(t *testing.T, e engine.Engine, inputs ...engine.Tensor) []engine.Tensor {
	require.NoError(t, e.SubmitTensors(0, inputs))
	result, err := e.Wait(0)
	require.NoError(t, err)
	return result.Outputs
}

// Rank 0 is a shape, of inputs and outputs of any type, also where the file does not tell the rank.
func TestScalars(t *testing.T) {
	e := openNetwork(t, "scalars")
	m := e.Model()
	require.Equal(t, []engine.TensorInfo{
		{Name: "values", Type: engine.Float32, Shape: []int64{-1}}, {Name: "factor", Type: engine.Float32, Shape: []int64{}},
	}, m.Inputs)
	require.Equal(t, []engine.TensorInfo{
		{Name: "product", Type: engine.Float32, Shape: []int64{}},
		{Name: "product_half", Type: engine.Float16, Shape: []int64{}},
		{Name: "size", Type: engine.Int64, Shape: []int64{}},
		{Name: "over", Type: engine.Bool, Shape: []int64{}},
		{Name: "unranked", Type: engine.Float32},
	}, m.Outputs)
	for _, test := range []struct {
		values          []float32
		factor, product float32
		half            uint16
	}{{[]float32{1, 3, 2}, 2, 6, 0x4600}, {[]float32{-1}, 4, -4, 0xc400}, {[]float32{1, 3, 2}, .5, 1.5, 0x3e00}} {
		got := infer(t, e,
			engine.Tensor{Name: "values", Type: engine.Float32, Shape: []int64{int64(len(test.values))}, Data: floats(test.values...)},
			engine.Tensor{Name: "factor", Type: engine.Float32, Shape: []int64{}, Data: floats(test.factor)})
		require.Equal(t, []engine.Tensor{
			{Name: "product", Type: engine.Float32, Shape: []int64{}, Data: floats(test.product)},
			{Name: "product_half", Type: engine.Float16, Shape: []int64{}, Data: halves(test.half)},
			{Name: "size", Type: engine.Int64, Shape: []int64{}, Data: integer(int64(len(test.values)))},
			{Name: "over", Type: engine.Bool, Shape: []int64{}, Data: truth(test.product > test.factor)},
			{Name: "unranked", Type: engine.Float32, Shape: []int64{}, Data: floats(-test.product)},
		}, got)
	}
	err := e.SubmitTensors(0, []engine.Tensor{
		{Name: "values", Type: engine.Float32, Shape: []int64{1}, Data: floats(1)},
		{Name: "factor", Type: engine.Float32, Shape: []int64{1}, Data: floats(1)},
	})
	require.ErrorContains(t, err, `input "factor" has shape [1], the model takes []`)
}

// A model whose only peculiarity is a scalar output, which is the usual case.
func TestScalarOutputs(t *testing.T) {
	e := openNetwork(t, "scalar")
	for _, values := range [][]float32{{1, 3, 2}, {7, 5, 4}, {9}} {
		got := infer(t, e, engine.Tensor{Name: "values", Type: engine.Float32, Shape: []int64{int64(len(values))}, Data: floats(values...)})
		most := max(values[0], values[len(values)-1], values[len(values)/2])
		require.Equal(t, []engine.Tensor{
			{Name: "product", Type: engine.Float32, Shape: []int64{}, Data: floats(most)},
			{Name: "size", Type: engine.Int64, Shape: []int64{}, Data: integer(int64(len(values)))},
		}, got)
	}
}

// Float16 outputs whose sizes are open, depend on the data or have no rank; empty ones included.
func TestOpenSizesOfHalves(t *testing.T) {
	e := openNetwork(t, "varying_half")
	for _, values := range [][]float32{{2, 0, 1}, {0, 1, 2}, {0, 0, 0}, {1, 1, 1}, {0, 3}, {0, 0}, {4, 5, 6, 7}, {2, 0, 1}} {
		n := int64(len(values))
		where, all := []byte{}, []byte{}
		for i, v := range values {
			all = append(all, halves([]uint16{0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700}[int(v)])...)
			if v != 0 {
				where = append(where, halves([]uint16{0, 0x3c00, 0x4000, 0x4200}[i])...)
			}
		}
		got := infer(t, e, engine.Tensor{Name: "x", Type: engine.Float32, Shape: []int64{n}, Data: floats(values...)})
		require.Equal(t, []int64{1, int64(len(where) / 2)}, got[0].Shape)
		require.Equal(t, where, append([]byte{}, got[0].Data...))
		require.Equal(t, []engine.Tensor{
			{Name: "unranked", Type: engine.Float16, Shape: []int64{n}, Data: all},
			{Name: "same", Type: engine.Float32, Shape: []int64{n}, Data: floats(values...)},
		}, got[1:])
	}
}

// What a file may not ask for is refused before anything is allocated.
func TestAbsurdInputs(t *testing.T) {
	for _, test := range []struct{ name, err string }{
		{"huge_batch", "a batch of 2147483648 images, at most 1024 are possible (export the model with a batch of 1, or an open one)"},
		{"huge_sides", `input "images" takes images of 16384x16384, sides from 1 to 32768 and 67108864 pixels are possible`},
	} {
		e := openNetwork(t, test.name)
		require.EqualError(t, e.Submit(0, []engine.Image{{}}), "onnxruntime submit: the model takes no images: "+test.err)
	}
	options := enginetest.Network(t, "image_free")
	options.Width, options.Height, options.MaxBatch = 4096, 4096, 16
	_, err := onnxruntime.Open(options)
	require.EqualError(t, err, "onnxruntime open: a batch of 16 images of 4096x4096 takes 3.0 GiB, at most 2 are possible")
}
