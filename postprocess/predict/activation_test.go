package predict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

func TestActivationOfTheLastLayers(t *testing.T) {
	for _, test := range []struct {
		layers []string // from the first to the last
		want   engine.Activation
	}{
		{[]string{"GlobalAveragePool", "Flatten", "Gemm"}, engine.Softmax},
		{[]string{"MatMul", "Add"}, engine.Softmax},
		{[]string{"Gemm", "Softmax"}, engine.Softmax},
		{[]string{"Gemm", "LogSoftmax", "Cast"}, engine.Softmax},
		{[]string{"Conv", "GlobalAveragePool", "Flatten"}, engine.Softmax},
		{[]string{"Gemm", "Sigmoid"}, engine.Sigmoid},
		{[]string{"Conv", "Sigmoid", "Reshape", "QuantizeLinear", "DequantizeLinear"}, engine.Sigmoid},
		{[]string{"Gemm", "Sigmoid", "Clip"}, ""},
		{[]string{"Gemm", "Sigmoid", "Mul"}, ""},
		{nil, ""},
	} {
		g := &onnx.GraphProto{}
		at := "images"
		for _, layer := range test.layers {
			g.Node = append(g.Node, onnx.NewNode(layer, layer, []string{at, "constant"}, []string{layer + "/out"}))
			at = layer + "/out"
		}
		assert.Equal(t, test.want, activation(g, at), test.layers)
	}
	ring := &onnx.GraphProto{Node: []*onnx.NodeProto{{OpType: proto.String("Cast"), Input: []string{"a"}, Output: []string{"a"}}}}
	assert.Empty(t, activation(ring, "a"))
	bias := &onnx.GraphProto{Node: []*onnx.NodeProto{
		onnx.NewNode("MatMul", "m", []string{"x", "w"}, []string{"m"}), onnx.NewNode("Add", "a", []string{"bias", "m"}, []string{"a"}),
	}}
	assert.Equal(t, engine.Softmax, activation(bias, "a"))
}
