package quantize

import (
	"math"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// Apply returns a copy of the plan's model with QuantizeLinear and DequantizeLinear nodes. For TensorRT: symmetric INT8 with zero point 0,
// one scale per activation, one per output channel of weights, biases in FP32.
func (p *Plan) Apply(ranges Ranges) (*onnx.Model, error) {
	if p.options.Target == ONNXRuntime {
		return p.applyForCPU(ranges)
	}
	limits, err := p.limits(ranges)
	if err != nil {
		return nil, err
	}
	layers := make(map[string]bool)
	for i := range p.Layers {
		layers[p.Layers[i].node.Out(0)] = p.Layers[i].Quantized()
	}
	residual := make(map[string]int)
	for n, i := range p.residual {
		residual[n.Out(0)] = i
	}
	m := p.model.Clone()
	g := m.Proto.Graph
	r := &rewriting{graph: g, index: onnx.NewIndex(g), limits: limits, options: p.options, dequantized: make(map[string]string)}
	for _, n := range g.Node {
		// The first output identifies the nodes of the copy.
		if layers[n.Out(0)] {
			for i := range n.Input[:2] {
				if t := r.index.Constant(n.Input[i]); t != nil {
					n.Input[i], err = r.weights(n, t, n.Input[i])
				} else {
					n.Input[i] = r.activation(n.Input[i])
				}
				if err != nil {
					return nil, err
				}
			}
		}
		if i, ok := residual[n.Out(0)]; ok {
			n.Input[i] = r.activation(n.Input[i])
		}
		r.nodes = append(r.nodes, n)
	}
	g.Node = r.nodes
	m.DropUnused()
	return m, nil
}

type rewriting struct {
	graph       *onnx.GraphProto
	index       *onnx.Index
	limits      map[string]float32
	options     Options
	dequantized map[string]string // dequantized tensor names by tensor
	nodes       []*onnx.NodeProto
	zero        string // zero point shared by activations

	// For ONNX Runtime.
	scales       map[string]float32   // of activations, by dequantized name
	weightScales map[string][]float32 // by dequantized name
}

// activation returns the dequantized name of a tensor and adds its pair of nodes the first time.
func (r *rewriting) activation(name string) string {
	if other, ok := r.dequantized[name]; ok {
		return other
	}
	if r.zero == "" {
		r.zero = r.index.UniqueName("int8_zero_point")
		r.graph.Initializer = append(r.graph.Initializer, onnx.NewInt8s(r.zero, []int8{0}))
	}
	scale := r.index.UniqueName(name + "_scale")
	r.graph.Initializer = append(r.graph.Initializer, onnx.NewFloats(scale, []float32{Scale(r.limits[name])}))
	r.dequantized[name] = r.pair(name, scale, r.zero)
	return r.dequantized[name]
}

// pair adds QuantizeLinear and DequantizeLinear and returns the name of their output.
func (r *rewriting) pair(name, scale, zero string, attributes ...*onnx.AttributeProto) string {
	quantized, back := r.index.UniqueName(name+"_quantized"), r.index.UniqueName(name+"_dequantized")
	r.nodes = append(
		r.nodes,
		onnx.NewNode("QuantizeLinear", name+"_QuantizeLinear", []string{name, scale, zero}, []string{quantized}, attributes...),
		onnx.NewNode("DequantizeLinear", name+"_DequantizeLinear", []string{quantized, scale, zero}, []string{back}, attributes...),
	)
	return back
}

// weights returns the dequantized name of constant weights. Layers that share weights share the pair of nodes.
func (r *rewriting) weights(n *onnx.NodeProto, t *onnx.TensorProto, name string) (string, error) {
	if other, ok := r.dequantized[name]; ok {
		return other, nil
	}
	values, err := t.Floats()
	if err != nil {
		return "", unsupported("int8", "%v", "", err)
	}
	axis := outputAxis(n, t.Dims)
	layout := along(axis, t.Dims)
	scales := weightScales(values, layout)
	if r.options.ReduceRange {
		for i := range scales {
			scales[i] *= 2
		}
	}
	var dims []int64
	var attributes []*onnx.AttributeProto
	if axis >= 0 {
		dims = []int64{int64(len(scales))}
		attributes = append(attributes, onnx.Int("axis", int64(axis)))
	}
	scale, zero := r.index.UniqueName(name+"_scale"), r.index.UniqueName(name+"_zero_point")
	r.graph.Initializer = append(r.graph.Initializer, onnx.NewFloats(scale, scales, dims...),
		onnx.NewInt8s(zero, make([]int8, len(scales)), dims...))
	if !r.options.StoreInt8 {
		r.dequantized[name] = r.pair(name, scale, zero, attributes...)
		return r.dequantized[name], nil
	}
	stored, back := r.index.UniqueName(name+"_quantized"), r.index.UniqueName(name+"_dequantized")
	r.graph.Initializer = append(r.graph.Initializer, onnx.NewInt8s(stored, rounded(values, layout, scales), t.Dims...))
	r.nodes = append(r.nodes,
		onnx.NewNode("DequantizeLinear", name+"_DequantizeLinear", []string{stored, scale, zero}, []string{back}, attributes...))
	r.dequantized[name] = back
	if r.weightScales == nil {
		r.weightScales = make(map[string][]float32)
	}
	r.weightScales[back] = scales
	return back, nil
}

// outputAxis returns the axis of a weight for its layer's output channels, -1 if there is none.
func outputAxis(n *onnx.NodeProto, dims []int64) int {
	switch op := n.GetOpType(); {
	case op == "Conv":
		return 0
	case op == "ConvTranspose":
		return 1 // output channels within a group
	case op == "Gemm" && len(dims) == 2:
		return 1 - int(n.IntOr("transB", 0)&1)
	case op == "MatMul" && len(dims) == 2:
		return 1
	}
	return -1
}

// channels maps an element of a tensor to its index along an axis.
type channels struct{ inner, count int }

// along returns the channels of an axis; -1 puts every element into channel 0.
func along(axis int, dims []int64) channels {
	if axis < 0 {
		return channels{inner: 1, count: 1}
	}
	c := channels{inner: 1, count: int(dims[axis])}
	for _, d := range dims[axis+1:] {
		c.inner *= int(d)
	}
	return c
}

func (c channels) of(element int) int { return element / c.inner % c.count }

// weightScales returns one scale per channel.
func weightScales(values []float32, c channels) []float32 {
	scales := make([]float32, c.count)
	for i, v := range values {
		at := c.of(i)
		scales[at] = max(scales[at], float32(math.Abs(float64(v))))
	}
	for i, limit := range scales {
		scales[i] = Scale(limit)
	}
	return scales
}

// rounded quantizes like QuantizeLinear: it rounds to even and saturates.
func rounded(values []float32, c channels, scales []float32) []int8 {
	result := make([]int8, len(values))
	for i, v := range values {
		q := math.RoundToEven(float64(v / scales[c.of(i)]))
		result[i] = int8(min(max(q, -128), 127))
	}
	return result
}
