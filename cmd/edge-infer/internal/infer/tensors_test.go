package infer

import (
	"encoding/binary"
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
