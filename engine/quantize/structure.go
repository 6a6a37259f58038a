package quantize

import (
	"path"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// heavy reports whether a node is worth quantizing: nearly all arithmetic of a detector is in these operators.
func heavy(n *onnx.NodeProto) bool {
	if !n.IsStandard() {
		return false
	}
	switch n.GetOpType() {
	case "Conv", "ConvTranspose", "Gemm", "MatMul":
		return true
	}
	return false
}

// nodeName identifies a node in reports and exclusion lists: its name, or its first output if it has none.
func nodeName(n *onnx.NodeProto) string {
	if n.GetName() != "" {
		return n.GetName()
	}
	return n.Out(0)
}

// structure is a detector's graph as the quantization rules need it.
type structure struct {
	graph  *onnx.GraphProto
	index  *onnx.Index
	values map[string]onnx.Value
	// tail contains the nodes after the last heavy ones: they decode head outputs into boxes and scores, with values as large as the image.
	// The averaging convolution of a distribution focal loss is one of them.
	tail map[*onnx.NodeProto]bool
	// heads contains the heavy nodes whose outputs enter the tail.
	heads map[*onnx.NodeProto]bool
}

func newStructure(m *onnx.Model) *structure {
	s := &structure{
		graph: m.Proto.Graph, index: onnx.NewIndex(m.Proto.Graph), values: m.Infer(),
		tail: make(map[*onnx.NodeProto]bool), heads: make(map[*onnx.NodeProto]bool),
	}
	var walk []string
	for _, v := range s.graph.Output {
		walk = append(walk, v.GetName())
	}
	for len(walk) > 0 {
		n := s.index.Producer[walk[len(walk)-1]]
		walk = walk[:len(walk)-1]
		if n == nil || s.tail[n] || s.heads[n] {
			continue
		}
		if heavy(n) && !s.isDFL(n) {
			s.heads[n] = true
			continue
		}
		s.tail[n] = true
		walk = append(walk, n.AllInputs()...)
	}
	return s
}

// isDFL reports whether a Conv is that of a distribution focal loss: one output channel of kernel 1 with the weights 0, 1, 2...
func (s *structure) isDFL(n *onnx.NodeProto) bool {
	weight := s.index.Constant(n.In(1))
	if n.GetOpType() != "Conv" || weight == nil || len(weight.Dims) != 4 || weight.Dims[0] != 1 || weight.Dims[2] != 1 ||
		weight.Dims[3] != 1 || weight.Dims[1] < 2 {
		return false
	}
	values, err := weight.Floats()
	if err != nil {
		return false
	}
	for i, v := range values {
		if v != float32(i) {
			return false
		}
	}
	return true
}

// float reports whether a tensor is known to be float32.
func (s *structure) float(name string) bool { return s.values[name].Type == onnx.TensorProto_FLOAT }

// matches reports whether a node's name or operator is in a list of names with * and ? as wildcards within a path element.
func matches(patterns []string, n *onnx.NodeProto) bool {
	for _, p := range patterns {
		if p == nodeName(n) || p == n.GetOpType() {
			return true
		}
		if ok, _ := path.Match(p, nodeName(n)); ok {
			return true
		}
	}
	return false
}

// checkPatterns returns an error for a malformed pattern or one that matches no node, because a misspelt exclusion would go unnoticed.
func checkPatterns(op string, patterns []string, g *onnx.GraphProto) error {
	for _, p := range patterns {
		found := false
		for _, n := range g.Node {
			found = found || matches([]string{p}, n)
		}
		if _, err := path.Match(p, ""); err != nil && !found {
			return unsupported(op, "pattern %q is malformed", "use * and ? as wildcards within one element of a node's name", p)
		}
		if !found {
			return unsupported(op, "%q names no node of the model",
				"give a node's name, a pattern such as /model.22/*/conv/Conv, or an operator such as MatMul", p)
		}
	}
	return nil
}
