package testnet_test

import (
	"testing"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func parameters(m *onnx.Model) (count int64) {
	for _, t := range m.Proto.Graph.Initializer {
		if t.GetDataType() == int32(onnx.TensorProto_FLOAT) && len(t.Dims) == 4 {
			count += t.Dims[0] * t.Dims[1] * t.Dims[2] * t.Dims[3]
		}
	}
	return count
}

// The published n sizes have 3.2, 2.3 and 2.6 million parameters.
func TestShapesOfThePublishedNetworks(t *testing.T) {
	v8, v10, v11 := testnet.YOLO{}.V8(), testnet.YOLO{}.V10(), testnet.YOLO{}.V11()
	assert.InDelta(t, 3.15e6, float64(parameters(v8)), 0.05e6)
	assert.InDelta(t, 2.6e6, float64(parameters(v11)), 0.05e6)
	assert.InDelta(t, 2.3e6, float64(parameters(v10)), 0.1e6)
	assert.Equal(t, 64, v8.Operators()["Conv"])
	for _, m := range []*onnx.Model{v8, v10, v11, testnet.YOLO{Dynamic: true, Norms: true}.V11()} {
		batch := m.Proto.Graph.Input[0].GetType().GetTensorType().GetShape().GetDim()[0].GetDimValue()
		values := m.Infer()
		for _, n := range m.Proto.Graph.Node {
			for _, name := range n.Output {
				value, known := values[name]
				require.True(t, known && value.Shape != nil, "%s %s", name, value)
				for i, d := range value.Shape {
					require.True(t, d > 0 || i == 0 && batch == 0, "%s is %s", name, value)
				}
			}
		}
		want := []int64{1, 84, 8400}
		if m == v10 {
			want = []int64{1, 300, 6}
		}
		if batch == 0 {
			want[0] = onnx.UnknownDim
		}
		assert.Equal(t, want, values["output0"].Shape)
	}
}

func TestSameSeedSameNetwork(t *testing.T) {
	bytes := func(seed uint64) []byte {
		data, err := testnet.YOLO{Size: 64, Wide: 4, Seed: seed}.V11().Bytes()
		require.NoError(t, err)
		return data
	}
	assert.Equal(t, bytes(1), bytes(1))
	assert.NotEqual(t, bytes(1), bytes(2))
}
