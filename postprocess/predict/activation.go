package predict

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// maxSteps bounds the way back through a graph, which may have a cycle in a broken file.
const maxSteps = 64

// activation returns the activation of a classifier by the layers before its output. A network without one outputs logits, for which
// training nearly always uses softmax. It is empty where other layers come last.
func activation(g *onnx.GraphProto, output string) engine.Activation {
	makers := onnx.NewIndex(g).Producer
	for range maxSteps {
		n := makers[output]
		if n == nil || len(n.Input) == 0 {
			return ""
		}
		switch n.GetOpType() {
		case "Sigmoid", "HardSigmoid":
			return engine.Sigmoid
		case "Softmax", "LogSoftmax", "Gemm", "MatMul", "Conv":
			return engine.Softmax
		case "Add": // the bias of a MatMul: one of its inputs is a constant
			output = n.Input[0]
			if makers[output] == nil && len(n.Input) > 1 {
				output = n.Input[1]
			}
		case "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity", "Cast", "QuantizeLinear", "DequantizeLinear", "GlobalAveragePool",
			"ReduceMean":
			output = n.Input[0]
		default:
			return ""
		}
	}
	return ""
}
