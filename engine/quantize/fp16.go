package quantize

import (
	"math"
	"slices"
	"sort"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"google.golang.org/protobuf/proto"
)

// FP16Options configures ConvertFP16.
type FP16Options struct {
	// ConvertIO converts inputs and outputs too; otherwise they stay float32.
	ConvertIO bool
	// ConvertTail also converts the nodes that decode boxes from the head's outputs. Coordinates over 1024 pixels are then rounded to whole
	// pixels.
	ConvertTail bool
	// Exclude lists nodes that stay float32: names, patterns with * and ?, or operators.
	Exclude []string
	// Ranges are measured ranges of tensors; nodes with tensors beyond float16 stay float32. Nil if nothing was measured.
	Ranges Ranges
}

// FP16Report is the result of ConvertFP16.
type FP16Report struct {
	Converted int `json:"half"` // nodes that compute in float16
	// KeptFP32 maps the nodes with float tensors that stay float32 to the reason.
	KeptFP32 map[string]string `json:"full"`
	// Tensors are the weights that lost values, worst first.
	Tensors []FP16Tensor `json:"tensors,omitempty"`
}

// FP16Tensor is a weight or a measured activation that float16 cannot represent well enough.
type FP16Tensor struct {
	Name     string `json:"name"`
	Elements int    `json:"elements"`
	// Overflows counts values beyond 65504, Underflows non-zero values that became 0, Subnormals values left with fewer than 11 bits.
	Overflows  int     `json:"overflows"`
	Underflows int     `json:"underflows"`
	Subnormals int     `json:"subnormals"`
	Largest    float32 `json:"largest"`
}

// neverHalf maps operators without a float16 form, or whose sums and powers exceed its range in ordinary networks, to the reason.
var neverHalf = map[string]string{
	"NonMaxSuppression": "the operator takes float32 only", "Range": "the operator takes float32 only",
	"CumSum": "the operator takes float32 only", "Celu": "the operator takes float32 only",
	"ConstantOfShape": "its type is part of the node",
	"RoiAlign":        "image coordinates", "GridSample": "image coordinates",
	"Exp": "range", "Pow": "range", "Log": "range",
	"BatchNormalization": "range of the variance", "InstanceNormalization": "range of the variance",
	"LayerNormalization": "range of the variance", "GroupNormalization": "range of the variance",
	"RMSNormalization": "range of the variance",
	"ReduceProd":       "range of the product",
	"ReduceSum":        "range of the sum", "ReduceMean": "range of the sum", "ReduceL1": "range of the sum", "ReduceL2": "range of the sum",
	"ReduceSumSquare": "range of the sum", "ReduceLogSum": "range of the sum", "ReduceLogSumExp": "range of the sum",
	"LpNormalization": "range of the sum", "LRN": "range of the sum",
}

// ConvertFP16 converts the model in place to float16 tensors and weights, with Cast nodes between float32 and float16. It needs neither a
// GPU nor a backend.
func ConvertFP16(m *onnx.Model, options FP16Options) (*FP16Report, error) {
	if err := m.CheckOpset(onnx.NewestOpset, "the float16 conversion"); err != nil {
		return nil, err
	}
	if err := checkPatterns("fp16", options.Exclude, m.Proto.Graph); err != nil {
		return nil, err
	}
	h := &fp16Conversion{
		structure: newStructure(m), options: options, opset: m.Opset(),
		full: make(map[*onnx.NodeProto]string), kind: make(map[string]onnx.TensorProto_DataType), copies: make(map[string]string),
		report: &FP16Report{KeptFP32: make(map[string]string)},
	}
	h.decide()
	if err := h.rewrite(); err != nil {
		return nil, err
	}
	m.DropUnused()
	sort.Slice(h.report.Tensors, func(i, j int) bool {
		a, b := h.report.Tensors[i], h.report.Tensors[j]
		if a.Overflows+a.Underflows != b.Overflows+b.Underflows {
			return a.Overflows+a.Underflows > b.Overflows+b.Underflows
		}
		return a.Name < b.Name
	})
	return h.report, nil
}

type fp16Conversion struct {
	*structure
	options FP16Options
	opset   int
	full    map[*onnx.NodeProto]string           // nodes that stay float32, with the reason
	kind    map[string]onnx.TensorProto_DataType // float tensors after the conversion
	copies  map[string]string                    // name of a tensor in the other type
	nodes   []*onnx.NodeProto                    // of the new graph
	report  *FP16Report
}

// floats reports whether a node has float tensors, and whether it has a tensor of unknown type.
func (h *fp16Conversion) floats(n *onnx.NodeProto) (any, unknown bool) {
	for _, name := range append(n.AllInputs(), n.Output...) {
		if name == "" {
			continue
		}
		switch h.values[name].Type {
		case onnx.TensorProto_FLOAT:
			any = true
		case onnx.TensorProto_UNDEFINED:
			unknown = true
		}
	}
	return any, unknown
}

// decide selects the nodes that stay float32.
func (h *fp16Conversion) decide() {
	counting := make(map[string]bool) // floats computed from integers, such as sizes for Resize
	captured := make(map[string]bool)
	for _, n := range h.graph.Node {
		if len(n.Subgraphs()) > 0 {
			for _, name := range n.AllInputs() {
				captured[name] = true
			}
		}
	}
	for _, n := range h.graph.Node {
		any, unknown := h.floats(n)
		if !any {
			continue
		}
		reason, never := neverHalf[n.GetOpType()]
		switch {
		case !n.IsStandard():
			reason = "not an ONNX operator"
		case len(n.Subgraphs()) > 0:
			reason = "has a subgraph"
		case unknown:
			reason = "the types of its tensors are not known"
		case matches(h.options.Exclude, n):
			reason = "excluded"
		case never:
		case (n.GetOpType() == "QuantizeLinear" || n.GetOpType() == "DequantizeLinear") && h.opset < 19:
			reason = "scales are float32 before opset 19"
		case h.tail[n] && !h.options.ConvertTail:
			reason = "decodes the head's outputs"
		default:
			reason = h.rangeReason(n)
		}
		if reason == "" && h.counts(n, counting) {
			reason = "computes sizes"
		}
		for _, name := range n.Output {
			if reason == "" && captured[name] {
				reason = "read by a subgraph"
			}
		}
		if reason != "" && n.GetOpType() != "Constant" {
			h.full[n] = reason
			h.report.KeptFP32[nodeName(n)] = reason
		}
	}
}

// counts reports whether all floats that the node reads are computed from integers, and marks its outputs accordingly.
func (h *fp16Conversion) counts(n *onnx.NodeProto, counting map[string]bool) bool {
	found := false
	for _, name := range n.AllInputs() {
		switch {
		case counting[name]:
			found = true
		case n.GetOpType() == "Cast" && h.values[name].Type != onnx.TensorProto_FLOAT && h.values[name].Type != onnx.TensorProto_FLOAT16:
			found = true
		case h.float(name) && h.index.Constant(name) == nil:
			return false
		}
	}
	if found {
		for _, name := range n.Output {
			counting[name] = true
		}
	}
	return found
}

// rangeReason returns the reason why a node's weights or measured ranges exceed float16, empty if they do not.
func (h *fp16Conversion) rangeReason(n *onnx.NodeProto) string {
	for _, name := range append(n.AllInputs(), n.Output...) {
		if r, measured := h.options.Ranges[name]; measured && max(r.Max, -r.Min) > onnx.MaxHalf {
			return "measured values beyond float16 in " + name
		}
		if t := h.index.Constant(name); t != nil && h.float(name) && n.GetOpType() != "Constant" && n.GetOpType() != "Clip" {
			values, err := t.Floats()
			if err != nil {
				continue
			}
			for _, v := range values {
				if v > onnx.MaxHalf || v < -onnx.MaxHalf {
					return "weights beyond float16 in " + name
				}
			}
		}
	}
	return ""
}

// rewrite builds the new graph.
func (h *fp16Conversion) rewrite() error {
	for _, v := range h.graph.Input {
		name := v.GetName()
		if !h.float(name) || h.index.Initializer[name] != nil {
			continue
		}
		h.kind[name] = onnx.TensorProto_FLOAT
		if h.options.ConvertIO {
			h.kind[name] = onnx.TensorProto_FLOAT16
			v.GetType().GetTensorType().ElemType = proto.Int32(int32(onnx.TensorProto_FLOAT16))
		}
	}
	for _, n := range h.graph.Node {
		if err := h.addNode(n); err != nil {
			return err
		}
	}
	for _, v := range h.graph.Output {
		h.output(v)
	}
	for _, v := range h.graph.ValueInfo {
		if kind, known := h.kind[v.GetName()]; known {
			v.GetType().GetTensorType().ElemType = proto.Int32(int32(kind))
		}
	}
	h.graph.Node = h.nodes
	return nil
}

// addNode adds a node to the new graph after the casts that it needs.
func (h *fp16Conversion) addNode(n *onnx.NodeProto) error {
	_, full := h.full[n]
	any, _ := h.floats(n)
	constant := n.GetOpType() == "Constant"
	if any && !full && !constant {
		h.report.Converted++
	}
	for i, name := range n.Input {
		if name == "" || !h.float(name) || acceptsEither(n) {
			continue
		}
		want := onnx.TensorProto_FLOAT16
		if full || alwaysFloat32(n, i) {
			want = onnx.TensorProto_FLOAT
		}
		other, err := h.inType(name, want)
		if err != nil {
			return err
		}
		n.Input[i] = other
	}
	for _, name := range n.Output {
		if !h.float(name) || constant {
			continue
		}
		h.kind[name] = onnx.TensorProto_FLOAT16
		if full {
			h.kind[name] = onnx.TensorProto_FLOAT
		}
	}
	if to := n.FindAttribute("to"); n.GetOpType() == "Cast" && !full && to.GetI() == int64(onnx.TensorProto_FLOAT) {
		to.I = proto.Int64(int64(onnx.TensorProto_FLOAT16))
	}
	h.nodes = append(h.nodes, n)
	return nil
}

// acceptsEither reports whether the node accepts either float type.
func acceptsEither(n *onnx.NodeProto) bool {
	switch n.GetOpType() {
	case "Shape", "Size", "Cast", "NonZero":
		return true
	}
	return false
}

// alwaysFloat32 reports whether input i of the operator is float32 independently of the other inputs.
func alwaysFloat32(n *onnx.NodeProto, i int) bool {
	return i > 0 && (n.GetOpType() == "Resize" || n.GetOpType() == "Upsample")
}

// inType returns the name of a tensor in the wanted type; it adds a converted weight or a Cast the first time.
func (h *fp16Conversion) inType(name string, want onnx.TensorProto_DataType) (string, error) {
	if t := h.index.Constant(name); t != nil {
		if want == onnx.TensorProto_FLOAT {
			return name, nil
		}
		return h.weight(name, t)
	}
	if have, known := h.kind[name]; !known || have == want {
		return name, nil
	}
	if other, done := h.copies[name]; done {
		return other, nil
	}
	suffix := "_float16"
	if want == onnx.TensorProto_FLOAT {
		suffix = "_float32"
	}
	other := h.index.UniqueName(name + suffix)
	h.copies[name], h.kind[other] = other, want
	h.nodes = append(h.nodes, onnx.NewNode("Cast", other, []string{name}, []string{other}, onnx.Int("to", int64(want))))
	return other, nil
}

// weight returns the name of the float16 copy of a constant.
func (h *fp16Conversion) weight(name string, t *onnx.TensorProto) (string, error) {
	if other, done := h.copies[name]; done {
		return other, nil
	}
	values, err := t.Floats()
	if err != nil {
		return "", unsupported("fp16", "%v", "", err)
	}
	entry := FP16Tensor{Name: name, Elements: len(values)}
	halves := make([]uint16, len(values))
	for i, v := range values {
		size := float32(math.Abs(float64(v)))
		entry.Largest = max(entry.Largest, size)
		switch {
		case size > onnx.MaxHalf:
			entry.Overflows++
			v = min(max(v, -onnx.MaxHalf), onnx.MaxHalf)
		case size != 0 && size < 1.0/(1<<14):
			entry.Subnormals++
		}
		halves[i] = onnx.ToHalf(v)
		if v != 0 && halves[i]&0x7fff == 0 {
			entry.Underflows++
			entry.Subnormals--
		}
	}
	if entry.Overflows+entry.Underflows+entry.Subnormals > 0 {
		h.report.Tensors = append(h.report.Tensors, entry)
	}
	other := h.index.UniqueName(name + "_float16")
	h.copies[name] = other
	converted := &onnx.TensorProto{Name: &other, Dims: slices.Clone(t.Dims)}
	converted.SetHalves(halves)
	h.graph.Initializer = append(h.graph.Initializer, converted)
	return other, nil
}

// output gives a graph output its external type: float32, or float16 with ConvertIO.
func (h *fp16Conversion) output(v *onnx.ValueInfoProto) {
	name := v.GetName()
	have, known := h.kind[name]
	producer := h.index.Producer[name]
	if !known || producer == nil {
		return
	}
	want := onnx.TensorProto_FLOAT
	if h.options.ConvertIO {
		want = onnx.TensorProto_FLOAT16
		v.GetType().GetTensorType().ElemType = proto.Int32(int32(want))
	}
	if have == want {
		return
	}
	// The producer's tensor is renamed, and the Cast produces the output.
	inner := h.index.UniqueName(name + "_inner")
	for _, n := range h.nodes {
		for i := range n.Input {
			if n.Input[i] == name {
				n.Input[i] = inner
			}
		}
		for i := range n.Output {
			if n.Output[i] == name {
				n.Output[i] = inner
			}
		}
	}
	h.kind[inner], h.kind[name] = have, want
	h.nodes = append(h.nodes, onnx.NewNode("Cast", name, []string{inner}, []string{name}, onnx.Int("to", int64(want))))
}
