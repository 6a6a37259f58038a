package quantize

import (
	"fmt"
	"slices"
	"sort"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// Options configures NewPlan. The zero value is TensorRT's recipe with DefaultMethod.
type Options struct {
	Target Target // TensorRT when empty
	Method Method // DefaultMethod when empty
	// Exclude lists layers that stay in floating point: names, patterns with * and ?, or operators.
	Exclude []string
	// Sensitive lists layers that stay in floating point because of a measurement; see Search.SensitiveLayers.
	Sensitive []string
	// Only, if not empty, lists the only layers to quantize.
	Only []string
	// QuantizeHead also quantizes the last layers before the decoding, at a large loss of accuracy for most detectors.
	QuantizeHead bool
	// QuantizeNarrow also quantizes layers with so few channels that TensorRT runs them slower in INT8 than in FP16.
	QuantizeNarrow bool
	// SeparateScales gives every tensor its own scale. Otherwise the inputs and the output of a Concat, with the tensors connected to them
	// by data movement, share one scale, so that TensorRT needs no requantization.
	SeparateScales bool
	// FloatResiduals leaves the identity branch of a residual Add in floating point.
	FloatResiduals bool
	// StoreInt8 stores weights as INT8 with a DequantizeLinear only, a quarter of the size. Otherwise they stay FP32 with a pair of
	// QuantizeLinear and DequantizeLinear, which TensorRT 8 prefers.
	// For ONNXRuntime they always are.
	StoreInt8 bool
	// ReduceRange uses 7 bits of weights, for ONNXRuntime on x86-64 processors without VNNI, whose products of 8 bits saturate.
	ReduceRange bool
}

// Layer is a node with most of the arithmetic: Conv, ConvTranspose, Gemm or MatMul.
type Layer struct {
	Name     string `json:"name"`
	Operator string `json:"operator"`
	// Reason is why the layer stays in floating point; empty if it is quantized.
	Reason string `json:"reason,omitempty"`
	node   *onnx.NodeProto
}

// groupedBeforeAdd is the reason of Plan.groupedResidual.
const groupedBeforeAdd = "in groups before an Add, for which TensorRT has no INT8 kernel"

// Quantized reports whether the layer computes in INT8.
func (l *Layer) Quantized() bool { return l.Reason == "" }

// Plan decides where a model gets QuantizeLinear and DequantizeLinear nodes. The model must not change after NewPlan.
type Plan struct {
	// Layers are in the model's order.
	Layers []Layer
	// Tensors are the activations whose ranges Apply needs, in the model's order.
	Tensors []string

	options Options
	model   *onnx.Model
	*structure
	// residual maps an Add to the index of its identity input, which gets its own pair of nodes.
	residual map[*onnx.NodeProto]int
	group    map[string]string // representative of the tensors that share a scale
}

// Prepare returns a copy of the model that is ready for a plan: batch normalization folded, opset 13 or newer.
func Prepare(m *onnx.Model) (*onnx.Model, error) {
	if err := m.CheckOpset(onnx.NewestOpset, "quantization"); err != nil {
		return nil, err
	}
	for op := range m.Operators() {
		if op == "QuantizeLinear" || op == "QLinearConv" || op == "ConvInteger" {
			return nil, unsupported("int8", "the model is quantized already: it has %s nodes", "start from the FP32 model", op)
		}
	}
	m = m.Clone()
	if _, err := m.FoldBatchNorm(); err != nil {
		return nil, err
	}
	if err := m.RaiseOpset(13); err != nil {
		return nil, err
	}
	return m, nil
}

// NewPlan decides which layers of a prepared model are quantized.
func NewPlan(m *onnx.Model, options Options) (*Plan, error) {
	if options.Method == "" {
		options.Method = DefaultMethod
	}
	options.ReduceRange = options.ReduceRange && options.Target == ONNXRuntime
	for _, patterns := range [][]string{options.Exclude, options.Only} {
		if err := checkPatterns("int8", patterns, m.Proto.Graph); err != nil {
			return nil, err
		}
	}
	p := &Plan{options: options, model: m, structure: newStructure(m), residual: make(map[*onnx.NodeProto]int)}
	quantized := make(map[*onnx.NodeProto]bool)
	for _, n := range p.graph.Node {
		if !heavy(n) || len(n.Input) < 2 || n.Out(0) == "" {
			continue
		}
		layer := Layer{Name: nodeName(n), Operator: n.GetOpType(), Reason: p.refuse(n), node: n}
		p.Layers = append(p.Layers, layer)
		quantized[n] = layer.Quantized()
	}
	if len(p.Layers) == 0 {
		return nil, unsupported("int8", "the model has no Conv, ConvTranspose, Gemm or MatMul to quantize", "")
	}
	if options.Target == ONNXRuntime {
		p.share()
		p.Tensors = p.sorted(p.quantizedTensors())
		return p, nil
	}
	if !options.FloatResiduals {
		p.findResiduals(quantized)
	}
	p.share()
	needed := make(map[string]bool)
	for _, l := range p.Layers {
		if l.Quantized() {
			for _, i := range p.activations(l.node) {
				needed[l.node.Input[i]] = true
			}
		}
	}
	for n, i := range p.residual {
		needed[n.Input[i]] = true
	}
	p.Tensors = p.sorted(needed)
	return p, nil
}

// Count returns the number of quantized layers.
func (p *Plan) Count() (quantized int) {
	for i := range p.Layers {
		if p.Layers[i].Quantized() {
			quantized++
		}
	}
	return quantized
}

// Unquantized returns the outputs of the layers before the decoding that stay in floating point. TensorRT's calibrators, which do not know
// a detector's structure, need this list.
func (p *Plan) Unquantized() (results []string) {
	for i := range p.Layers {
		n := p.Layers[i].node
		if !p.tail[n] && (p.heads[n] && !p.options.QuantizeHead || matches(p.options.Exclude, n) || p.sensitive(n)) {
			results = append(results, n.Out(0))
		}
	}
	return results
}

// weight returns the constant second operand of a heavy node, nil if both operands are computed.
func (p *Plan) weight(n *onnx.NodeProto) *onnx.TensorProto {
	return p.index.Constant(n.In(1))
}

// activations returns the indices of a heavy node's inputs with a per-tensor scale.
func (p *Plan) activations(n *onnx.NodeProto) []int {
	if p.weight(n) != nil {
		return []int{0}
	}
	return []int{0, 1}
}

// refuse returns the reason why a heavy node stays in floating point, empty if it is quantized.
func (p *Plan) refuse(n *onnx.NodeProto) string {
	weight := p.weight(n)
	switch {
	case p.isDFL(n):
		return "averages a distribution (DFL)"
	case p.tail[n]:
		return "belongs to the decoding"
	case matches(p.options.Exclude, n):
		return "excluded"
	case p.sensitive(n):
		return "distorts the head's outputs"
	case len(p.options.Only) > 0 && !matches(p.options.Only, n):
		return "not selected"
	case p.heads[n] && !p.options.QuantizeHead:
		return "produces the head's output"
	case !p.float(n.In(0)):
		return "input is not float32"
	case p.index.Constant(n.In(0)) != nil:
		return "input is a constant"
	case weight == nil && n.GetOpType() != "MatMul":
		return "weights are computed"
	case weight != nil && onnx.TensorProto_DataType(weight.GetDataType()) != onnx.TensorProto_FLOAT:
		return "weights are not float32"
	case weight != nil && n.GetOpType() != "MatMul" && n.GetOpType() != "Gemm" && len(weight.Dims) < 3:
		return "weights are not those of a convolution"
	case weight == nil && !p.float(n.In(1)):
		return "input is not float32"
	case p.vector(n):
		return "a matrix times a vector"
	case p.options.Target == ONNXRuntime:
		return p.refuseOnCPU(n)
	case p.groupedResidual(n):
		return groupedBeforeAdd
	case !p.options.QuantizeNarrow:
		return p.narrow(n, weight)
	}
	return ""
}

// sensitive reports whether the layer is listed as sensitive.
func (p *Plan) sensitive(n *onnx.NodeProto) bool {
	return slices.Contains(p.options.Sensitive, nodeName(n))
}

// vector reports whether a matrix product has one row or one column, which INT8 does not accelerate.
func (p *Plan) vector(n *onnx.NodeProto) bool {
	if n.GetOpType() != "MatMul" && n.GetOpType() != "Gemm" {
		return false
	}
	shape := p.values[n.Out(0)].Shape
	return len(shape) >= 2 && (shape[len(shape)-1] == 1 || shape[len(shape)-2] == 1)
}

// groupedResidual reports whether only an Add reads the output of a grouped convolution. TensorRT fuses the two, and TensorRT 8 then fails
// to build, because it has no INT8 kernel of a depthwise convolution with an Add, as in the attention of YOLO11.
func (p *Plan) groupedResidual(n *onnx.NodeProto) bool {
	if n.GetOpType() != "Conv" || n.IntOr("group", 1) == 1 {
		return false
	}
	reader := p.index.SoleReader(n.Out(0))
	return reader != nil && reader.GetOpType() == "Add" && reader.IsStandard()
}

// narrow returns the reason why TensorRT would run a convolution faster in FP16: fewer channels than a tensor core processes at once. The
// limits are those of NVIDIA's Model Optimizer.
func (p *Plan) narrow(n *onnx.NodeProto, weight *onnx.TensorProto) string {
	if n.GetOpType() != "Conv" || len(weight.Dims) != 4 {
		return ""
	}
	group := n.IntOr("group", 1)
	out, in := weight.Dims[0], weight.Dims[1]*group
	height, width := weight.Dims[2], weight.Dims[3]
	if group > 1 && (out%8 != 0 || height < 3) {
		return fmt.Sprintf("%d groups of a %dx%d kernel", group, height, width)
	}
	first := p.index.Producer[n.In(0)] == nil
	if min(in, out) < 16 && !(group == 1 && (out%8 == 0 || in%8 == 0) && (first || max(in, out) >= 16) && height == width) {
		return fmt.Sprintf("narrow: %d to %d channels", in, out)
	}
	return ""
}

// findResiduals finds the Adds that join the output of a quantized convolution with its bypass. Only the bypass is quantized, so that
// convolution and Add stay one kernel with INT8 output.
func (p *Plan) findResiduals(quantized map[*onnx.NodeProto]bool) {
	position := make(map[*onnx.NodeProto]int, len(p.graph.Node))
	for i, n := range p.graph.Node {
		position[n] = i
	}
	for _, n := range p.graph.Node {
		if n.GetOpType() != "Add" || !n.IsStandard() || len(n.Input) != 2 || p.tail[n] || n.Input[0] == n.Input[1] {
			continue
		}
		if p.index.Constant(n.Input[0]) != nil || p.index.Constant(n.Input[1]) != nil || !p.float(n.Input[0]) || !p.float(n.Input[1]) {
			continue
		}
		fused := -1
		for i, name := range n.Input {
			if from := p.index.Producer[name]; from != nil && p.groupedResidual(from) {
				fused = -1 // the Add is fused with that convolution in floating point
				break
			}
			conv := p.convolutionBefore(name, n)
			if conv == nil || !quantized[conv] {
				continue
			}
			// TensorRT fuses the Add with the later one of two convolutions.
			if fused < 0 || position[conv] > position[p.convolutionBefore(n.Input[fused], n)] {
				fused = i
			}
		}
		if fused >= 0 {
			p.residual[n] = 1 - fused
		}
	}
}

// convolutionBefore returns the convolution whose output only reader reads as name, directly or through an activation; nil if there is
// none.
func (p *Plan) convolutionBefore(name string, reader *onnx.NodeProto) *onnx.NodeProto {
	n := p.index.Producer[name]
	if n == nil || p.index.SoleReader(name) != reader {
		return nil
	}
	switch n.GetOpType() {
	case "Conv", "ConvTranspose":
		return n
	case "Relu", "LeakyRelu", "Clip", "HardSwish", "PRelu", "Swish":
		before := p.index.Producer[n.In(0)]
		if before != nil && before.GetOpType() == "Conv" && p.index.SoleReader(n.In(0)) == n {
			return before
		}
	case "Mul":
		// SiLU: the convolution's output times its own Sigmoid.
		for i := range n.Input {
			gate, conv := p.index.Producer[n.In(i)], p.index.Producer[n.In(1-i)]
			if gate != nil && conv != nil && len(n.Input) == 2 && conv.GetOpType() == "Conv" && gate.In(0) == n.In(1-i) &&
				(gate.GetOpType() == "Sigmoid" || gate.GetOpType() == "HardSigmoid") && len(p.index.Readers[n.In(1-i)]) == 2 {
				return conv
			}
		}
	}
	return nil
}

// share joins the tensors that should have one scale.
func (p *Plan) share() {
	p.group = make(map[string]string)
	if p.options.SeparateScales {
		return
	}
	for _, n := range p.graph.Node {
		if p.tail[n] || !n.IsStandard() {
			continue
		}
		joined := []string{n.In(0)}
		if p.options.Target == ONNXRuntime && !movesData(n) {
			continue
		}
		switch n.GetOpType() {
		case "Concat":
			joined = n.Input
		case "Split", "Slice", "Resize", "Upsample", "MaxPool", "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity",
			"DepthToSpace", "SpaceToDepth":
		default:
			continue
		}
		if !p.float(n.In(0)) {
			continue
		}
		for _, name := range append(append([]string{}, joined...), n.Output...) {
			if name != "" && p.float(name) && p.index.Constant(name) == nil {
				p.group[p.leader(name)] = p.leader(n.Out(0))
			}
		}
	}
}

// leader returns the representative of a tensor's group.
func (p *Plan) leader(name string) string {
	for p.group[name] != "" && p.group[name] != name {
		name = p.group[name]
	}
	return name
}

// limits returns the limit of every tensor of the plan: the largest of its group.
func (p *Plan) limits(ranges Ranges) (map[string]float32, error) {
	limits, largest := make(map[string]float32), make(map[string]float32)
	var absent []string
	for _, name := range p.Tensors {
		limit, measured := ranges.Limit(name, p.options.Method)
		if !measured {
			absent = append(absent, name)
		}
		largest[p.leader(name)] = max(largest[p.leader(name)], limit)
	}
	if len(absent) > 0 {
		sort.Strings(absent)
		return nil, unsupported("int8", "no %s range was measured for %d tensors, such as %q", "calibrate this very model again",
			p.options.Method, len(absent), absent[0])
	}
	for _, name := range p.Tensors {
		limits[name] = largest[p.leader(name)]
	}
	return limits, nil
}
