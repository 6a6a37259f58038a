package infer

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

func TestNarrow(t *testing.T) {
	number := func(n int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(n)) }
	inputs := []engine.TensorInfo{{Name: "ids", Type: engine.Int32}, {Name: "wide", Type: engine.Int64}}
	tensors := []engine.Tensor{{Name: "ids", Type: engine.Int64, Data: number(-7)}, {Name: "wide", Type: engine.Int64, Data: number(1)}}
	narrow(tensors, inputs)
	require.Equal(t, engine.Tensor{Name: "ids", Type: engine.Int32, Data: []byte{0xf9, 0xff, 0xff, 0xff}}, tensors[0])
	require.Equal(t, engine.Int64, tensors[1].Type)
	tensors[0] = engine.Tensor{Name: "ids", Type: engine.Int64, Data: number(1 << 31)}
	narrow(tensors, inputs)
	require.Equal(t, engine.Int64, tensors[0].Type, "the engine says that it does not fit")
}

func TestDifference(t *testing.T) {
	d := difference("y", []int64{4}, []float32{0, 1, 2, 3.5}, []float32{0, 1, 2, 4})
	require.Equal(t, 0.5, d.Max)
	require.Equal(t, 0.125, d.Mean)
	require.InDelta(t, 20*math.Log10(4/0.25), *d.PSNR, 1e-9)
	require.Nil(t, difference("y", nil, []float32{1}, []float32{1}).PSNR)
	require.Equal(t, math.MaxFloat32, difference("y", nil, []float32{float32(math.NaN())}, []float32{1}).Max, "no number, no agreement")
}
