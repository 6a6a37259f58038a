package predict

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// describeRows sets what the graph shows of a detector's rows. It changes nothing where there are several outputs, or one without rows.
func describeRows(model *onnx.Model, m *engine.Metadata) {
	outputs, err := model.Outputs()
	if err != nil || len(outputs) != 1 || len(outputs[0].Shape) != 3 {
		return // the backend's error is more precise
	}
	g := rowGraph{onnx.NewIndex(model.Proto.Graph)}
	if last := outputs[0].Shape[2]; last == engine.CandidateFields || last < 0 {
		m.LastColumn = g.lastColumn(outputs[0].Name, maxSteps)
	}
	n, _ := g.origin(outputs[0].Name, 0)
	m.BoxShares = n != nil && n.GetOpType() == "Sigmoid"
}

// rowGraph finds out where the columns of an output's rows come from.
type rowGraph struct{ *onnx.Index }

// origin returns the node that computes a part of a tensor, behind nodes that only arrange, select or join numbers, and the number of its
// output. part counts the tensors that are joined: 0 for the first, -1 for the last. The node is nil where the graph does not show it.
func (g rowGraph) origin(name string, part int) (n *onnx.NodeProto, output int) {
	for range maxSteps {
		n = g.Producer[name]
		if n == nil || len(n.Input) == 0 || !n.IsStandard() {
			return nil, 0
		}
		switch n.GetOpType() {
		case "Concat":
			name = n.Input[(part+len(n.Input))%len(n.Input)]
		case "Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split", "Gather", "GatherElements",
			"GatherND", "Expand", "Tile", "Pad", "Floor", "QuantizeLinear", "DequantizeLinear":
			name = n.Input[0]
		default:
			for output < len(n.Output)-1 && n.Output[output] != name {
				output++
			}
			return n, output
		}
	}
	return nil, 0
}

// lastColumn returns what the last part of a tensor is. Arithmetic with class numbers gives class numbers: some exports search the best of
// all scores and divide its place by the number of classes.
func (g rowGraph) lastColumn(name string, steps int) engine.Column {
	n, output := g.origin(name, -1)
	if n == nil || steps == 0 {
		return ""
	}
	switch n.GetOpType() {
	case "ArgMax", "ArgMin", "NonZero", "NonMaxSuppression", "Mod":
		return engine.ClassColumn
	case "TopK":
		if output == 1 {
			return engine.ClassColumn
		}
		return engine.ScoreColumn
	case "Add", "Sub", "Mul", "Div":
		return g.lastColumn(n.Input[0], steps-1)
	case "Sigmoid", "HardSigmoid", "Softmax", "ReduceMax", "Max", "Conv", "Gemm", "MatMul", "Clip", "Exp", "Pow", "Sqrt":
		return engine.ScoreColumn
	}
	return ""
}
