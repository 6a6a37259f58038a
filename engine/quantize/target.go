package quantize

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// Target is the runtime that a quantized model is for. Runtimes fuse QuantizeLinear and DequantizeLinear nodes with the operators between
// them, and each one expects them in other places.
type Target string

// The targets. TensorRT wants symmetric INT8 in front of the layers with most of the arithmetic and fuses what follows them. ONNX Runtime
// on a CPU has integer kernels of single operators only: it computes a layer in floating point unless its output is quantized as well, and
// its fastest kernels take unsigned activations and signed weights.
const (
	TensorRT    Target = "tensorrt"
	ONNXRuntime Target = "onnxruntime"
)

// hasIntegerKernel reports whether ONNX Runtime's CPU provider computes an operator between quantized tensors in integers, or only moves
// them.
func hasIntegerKernel(n *onnx.NodeProto) bool {
	if !n.IsStandard() {
		return false
	}
	switch n.GetOpType() {
	case "Sigmoid", "LeakyRelu", "Relu", "Clip", "Add", "Mul", "Concat", "MaxPool", "AveragePool", "GlobalAveragePool", "Resize", "Split",
		"Slice", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		return true
	}
	return false
}

// movesData reports whether an operator's outputs have values of its input only, so that both may have one scale.
func movesData(n *onnx.NodeProto) bool {
	switch n.GetOpType() {
	case "MaxPool", "Resize", "Split", "Slice", "Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		return n.IsStandard()
	}
	return false
}

// refuseOnCPU returns the reason why ONNX Runtime would compute a layer in floating point although its inputs are quantized.
func (p *Plan) refuseOnCPU(n *onnx.NodeProto) string {
	switch {
	case n.GetOpType() == "ConvTranspose":
		return "ONNX Runtime has no INT8 kernel of ConvTranspose"
	case n.GetOpType() == "Gemm" && (n.FloatOr("alpha", 1) != 1 || n.FloatOr("beta", 1) != 1):
		return "ONNX Runtime has no INT8 kernel of a Gemm with factors"
	}
	return ""
}

// quantizedTensors returns the activations that ONNX Runtime reads and writes as integers: the inputs and outputs of quantized layers, and
// of the operators with integer kernels whose inputs are all quantized.
func (p *Plan) quantizedTensors() map[string]bool {
	found := make(map[string]bool)
	add := func(name string) {
		if name != "" && p.float(name) && p.index.Constant(name) == nil {
			found[name] = true
		}
	}
	for i := range p.Layers {
		if !p.Layers[i].Quantized() {
			continue
		}
		n := p.Layers[i].node
		for _, input := range p.activations(n) {
			add(n.Input[input])
		}
		add(p.clampedOutput(n))
	}
	for _, n := range p.graph.Node { // in the order of computation
		if p.tail[n] || !hasIntegerKernel(n) || !p.readsQuantized(n, found) {
			continue
		}
		for _, name := range n.Output {
			add(name)
		}
	}
	for name := range p.index.Outputs {
		delete(found, name)
	}
	return found
}

// clampedOutput returns the output of a layer, or that of the Relu or Clip that alone reads it: ONNX Runtime replaces these by the range of
// the quantized output.
func (p *Plan) clampedOutput(n *onnx.NodeProto) string {
	reader := p.index.SoleReader(n.Out(0))
	if reader != nil && reader.IsStandard() && (reader.GetOpType() == "Relu" || reader.GetOpType() == "Clip") && !p.tail[reader] {
		return reader.Out(0)
	}
	return n.Out(0)
}

// readsQuantized reports whether all computed inputs of a node are quantized, and there are some.
func (p *Plan) readsQuantized(n *onnx.NodeProto, quantized map[string]bool) bool {
	some := false
	for i, name := range n.Input {
		switch {
		case name == "" || i > 0 && !p.float(name): // shapes, axes
		case p.index.Constant(name) != nil:
			if n.GetOpType() == "Mul" || n.GetOpType() == "Add" || n.GetOpType() == "Concat" {
				return false // constants are not quantized
			}
		case !quantized[name]:
			return false
		default:
			some = true
		}
	}
	return some
}

// span is the range of an asymmetric activation; it contains 0.
type span struct{ low, high float32 }

// spans returns the range of every tensor of the plan; tensors that share a scale have the union of theirs.
func (p *Plan) spans(ranges Ranges) (map[string]span, error) {
	limits, err := p.limits(ranges)
	if err != nil {
		return nil, err
	}
	shared := make(map[string]span)
	for _, name := range p.Tensors {
		limit, r := limits[name], ranges[name]
		own := span{min(max(r.Min, -limit), 0), max(min(r.Max, limit), 0)}
		if r.Min == 0 && r.Max == 0 { // a table of TensorRT has limits only
			own = span{-limit, limit}
		}
		all := shared[p.leader(name)]
		shared[p.leader(name)] = span{min(all.low, own.low), max(all.high, own.high)}
	}
	found := make(map[string]span)
	for _, name := range p.Tensors {
		found[name] = shared[p.leader(name)]
	}
	return found, nil
}

// unsigned returns the scale and the zero point of a range in 255 steps.
func (s span) unsigned() (scale float32, zero uint8) {
	scale = (s.high - s.low) / 255
	if scale < math.SmallestNonzeroFloat32*(1<<23) {
		return 1, 0
	}
	return scale, uint8(min(max(math.RoundToEven(float64(-s.low/scale)), 0), 255))
}

// applyForCPU is Apply for ONNX Runtime on a CPU: unsigned activations with a zero point, quantized behind the node that computes them;
// signed weights with one scale per output channel, and biases in the scale of the product.
func (p *Plan) applyForCPU(ranges Ranges) (*onnx.Model, error) {
	spans, err := p.spans(ranges)
	if err != nil {
		return nil, err
	}
	m := p.model.Clone()
	g := m.Proto.Graph
	r := &rewriting{
		graph: g, index: onnx.NewIndex(g), options: p.options, dequantized: make(map[string]string), scales: make(map[string]float32),
	}
	r.options.StoreInt8 = true
	quantized := make(map[string]bool)
	for i := range p.Layers {
		quantized[p.Layers[i].node.Out(0)] = p.Layers[i].Quantized()
	}
	for _, v := range g.Input {
		r.unsigned(v.GetName(), spans)
	}
	for _, n := range g.Node {
		for i, name := range n.Input {
			if other := r.dequantized[name]; other != "" && r.index.Constant(name) == nil {
				n.Input[i] = other
			}
		}
		if quantized[n.Out(0)] {
			if err := r.layer(n); err != nil {
				return nil, err
			}
		}
		r.nodes = append(r.nodes, n)
		for _, name := range n.Output {
			r.unsigned(name, spans)
		}
	}
	g.Node = r.nodes
	m.DropUnused()
	return m, nil
}

// unsigned adds the pair of nodes of an activation that has a span.
func (r *rewriting) unsigned(name string, spans map[string]span) {
	s, wanted := spans[name]
	if !wanted {
		return
	}
	scale, zero := s.unsigned()
	scaleName, zeroName := r.index.UniqueName(name+"_scale"), r.index.UniqueName(name+"_zero_point")
	r.graph.Initializer = append(r.graph.Initializer, onnx.NewFloats(scaleName, []float32{scale}), onnx.NewUint8(zeroName, zero))
	r.dequantized[name] = r.pair(name, scaleName, zeroName)
	r.scales[r.dequantized[name]] = scale
}

// layer quantizes the weights and the bias of a layer whose inputs are dequantized.
func (r *rewriting) layer(n *onnx.NodeProto) error {
	scale := r.scales[n.Input[0]]
	weights := r.index.Constant(n.In(1))
	if weights == nil {
		return nil
	}
	var err error
	n.Input[1], err = r.weights(n, weights, n.Input[1])
	if err != nil {
		return err
	}
	bias := r.index.Constant(n.In(2))
	if bias == nil {
		return nil
	}
	n.Input[2], err = r.bias(bias, n.Input[2], scale, r.weightScales[n.Input[1]])
	return err
}

// bias adds a constant bias as 32-bit integers in the scale of the product, and returns its dequantized name.
func (r *rewriting) bias(t *onnx.TensorProto, name string, scale float32, weightScales []float32) (string, error) {
	values, err := t.Floats()
	if err != nil {
		return "", unsupported("int8", "%v", "", err)
	}
	scales := make([]float32, len(weightScales))
	stored := make([]int32, len(values))
	for i := range scales {
		scales[i] = scale * weightScales[i]
	}
	for i, v := range values {
		q := math.RoundToEven(float64(v) / float64(scales[i%len(scales)]))
		stored[i] = int32(min(max(q, math.MinInt32), math.MaxInt32))
	}
	var dims []int64
	var attributes []*onnx.AttributeProto
	if len(scales) > 1 {
		dims = []int64{int64(len(scales))}
		attributes = append(attributes, onnx.Int("axis", 0))
	}
	base := r.index.UniqueName(name + "_int32")
	scaleName := r.index.UniqueName(name + "_scale")
	zeroName := r.index.UniqueName(name + "_zero_point")
	back := r.index.UniqueName(name + "_dequantized")
	r.graph.Initializer = append(r.graph.Initializer, onnx.NewInt32s(base, stored, t.Dims...), onnx.NewFloats(scaleName, scales, dims...),
		onnx.NewInt32s(zeroName, make([]int32, len(scales)), dims...))
	r.nodes = append(r.nodes,
		onnx.NewNode("DequantizeLinear", base+"_DequantizeLinear", []string{base, scaleName, zeroName}, []string{back}, attributes...))
	return back, nil
}

// sorted returns the tensors of a set in the order of their computation.
func (p *Plan) sorted(set map[string]bool) (names []string) {
	for _, v := range p.graph.Input {
		if set[v.GetName()] {
			names = append(names, v.GetName())
		}
	}
	for _, n := range p.graph.Node {
		names = append(names, slices.DeleteFunc(slices.Clone(n.Output), func(name string) bool { return !set[name] })...)
	}
	return names
}
