package quantize

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// SeparateActivations returns an equivalent copy of the model in which the SiLUs after the given layers' outputs have the shape [N, C, H*W,
// 1], between two Reshapes that move no data. In a network with a calibrator, TensorRT 8.6 and 10.6 fuse a convolution and its SiLU into a
// kernel that exists in INT8 only, whatever precision is requested; they do not fuse across a change of shape, and the layer runs in FP16.
// Outputs that no SiLU reads are unchanged; separated counts the others. If it is 0, m itself is returned.
func SeparateActivations(m *onnx.Model, results []string) (made *onnx.Model, separated int) {
	made = m.Clone()
	g := made.Proto.Graph
	s := &separation{graph: g, index: onnx.NewIndex(g), values: made.Infer(), sigmoids: make(map[*onnx.NodeProto]string)}
	products := make(map[*onnx.NodeProto]string)
	for _, name := range results {
		name = s.afterNorm(name)
		if sigmoid, product := s.silu(name); product != nil {
			s.sigmoids[sigmoid], products[product] = name, name
		}
	}
	if len(products) == 0 {
		return m, 0
	}
	for _, n := range g.Node {
		name, computes := products[n]
		switch {
		case computes:
			s.flatten(name)
			s.unflatten(n, name)
		case s.sigmoids[n] != "":
			s.flatten(s.sigmoids[n])
			n.Input[0] = s.flat[s.sigmoids[n]]
			s.nodes = append(s.nodes, n)
		default:
			s.nodes = append(s.nodes, n)
		}
	}
	g.Node = s.nodes
	g.ValueInfo = slices.DeleteFunc(g.ValueInfo, func(v *onnx.ValueInfoProto) bool { // their shape has changed
		n := s.index.Producer[v.GetName()]
		return n != nil && s.sigmoids[n] != ""
	})
	return made, len(products)
}

type separation struct {
	graph    *onnx.GraphProto
	index    *onnx.Index
	values   map[string]onnx.Value
	sigmoids map[*onnx.NodeProto]string
	flat     map[string]string // name of an output in the other shape
	nodes    []*onnx.NodeProto
}

// afterNorm returns the output of the batch normalization after a layer, if there is one; TensorRT fuses the two.
func (s *separation) afterNorm(x string) string {
	if readers := s.index.Readers[x]; len(readers) == 1 && readers[0].IsStandard() && readers[0].GetOpType() == "BatchNormalization" &&
		readers[0].In(0) == x && !s.index.Outputs[x] {
		return readers[0].Out(0)
	}
	return x
}

// silu returns the nodes of x*sigmoid(x) for a 4-dimensional x that nothing else reads, nil if there are none.
func (s *separation) silu(x string) (sigmoid, product *onnx.NodeProto) {
	readers := s.index.Readers[x]
	if len(readers) != 2 || s.index.Outputs[x] || len(s.values[x].Shape) != 4 {
		return nil, nil
	}
	for i, n := range readers {
		other := readers[1-i]
		if !n.IsStandard() || n.GetOpType() != "Sigmoid" || !other.IsStandard() || other.GetOpType() != "Mul" {
			continue
		}
		y := n.Out(0)
		reads := other.In(0) == x && other.In(1) == y || other.In(0) == y && other.In(1) == x
		if reads && len(s.index.Readers[y]) == 1 && !s.index.Outputs[y] {
			return n, other
		}
	}
	return nil, nil
}

// flatten reshapes an output to its other shape, once.
func (s *separation) flatten(x string) {
	if s.flat[x] != "" {
		return
	}
	if s.flat == nil {
		s.flat = make(map[string]string)
	}
	shape := s.values[x].Shape
	pixels := int64(-1)
	if shape[2] > 0 && shape[3] > 0 {
		pixels = shape[2] * shape[3]
	}
	s.flat[x] = s.index.UniqueName(x + "_flat")
	s.reshape(x, s.flat[x], s.constant(x+"_flat_shape", 0, 0, pixels, 1))
}

// unflatten computes the product in the other shape and reshapes it back.
func (s *separation) unflatten(product *onnx.NodeProto, x string) {
	for i := range product.Input {
		if product.Input[i] == x {
			product.Input[i] = s.flat[x]
		}
	}
	result := product.Out(0)
	product.Output[0] = s.index.UniqueName(result + "_flat")
	s.nodes = append(s.nodes, product)
	var back string
	if shape := s.values[x].Shape; shape[2] > 0 && shape[3] > 0 {
		back = s.constant(x+"_shape", 0, 0, shape[2], shape[3])
	} else { // dynamic sides
		back = s.index.UniqueName(x + "_shape")
		s.nodes = append(s.nodes, onnx.NewNode("Shape", back, []string{x}, []string{back}))
	}
	s.reshape(product.Output[0], result, back)
}

// constant adds the shape for a Reshape; 0 keeps a dimension.
func (s *separation) constant(name string, dims ...int64) string {
	name = s.index.UniqueName(name)
	s.graph.Initializer = append(s.graph.Initializer, onnx.NewInts(name, dims, int64(len(dims))))
	return name
}

func (s *separation) reshape(from, to, shape string) {
	s.nodes = append(s.nodes, onnx.NewNode("Reshape", to+"_Reshape", []string{from, shape}, []string{to}))
}
