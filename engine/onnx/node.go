package onnx

import "google.golang.org/protobuf/proto"

// NewNode returns a node of the ONNX operator domain. An empty input name is an omitted optional input.
func NewNode(operator, name string, inputs, outputs []string, attributes ...*AttributeProto) *NodeProto {
	return &NodeProto{OpType: &operator, Name: &name, Input: inputs, Output: outputs, Attribute: attributes}
}

// Int returns an integer attribute.
func Int(name string, value int64) *AttributeProto {
	return &AttributeProto{Name: &name, I: &value, Type: AttributeProto_INT.Enum()}
}

// Ints returns an attribute with a list of integers.
func Ints(name string, values ...int64) *AttributeProto {
	return &AttributeProto{Name: &name, Ints: values, Type: AttributeProto_INTS.Enum()}
}

// Float returns a float attribute.
func Float(name string, value float32) *AttributeProto {
	return &AttributeProto{Name: &name, F: &value, Type: AttributeProto_FLOAT.Enum()}
}

// String returns a string attribute.
func String(name, value string) *AttributeProto {
	return &AttributeProto{Name: &name, S: []byte(value), Type: AttributeProto_STRING.Enum()}
}

// FindAttribute returns the attribute of that name, nil if there is none.
func (n *NodeProto) FindAttribute(name string) *AttributeProto {
	for _, a := range n.GetAttribute() {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}

// RemoveAttribute removes the attribute of that name.
func (n *NodeProto) RemoveAttribute(name string) {
	kept := n.Attribute[:0]
	for _, a := range n.Attribute {
		if a.GetName() != name {
			kept = append(kept, a)
		}
	}
	n.Attribute = kept
}

// IntOr returns the integer attribute of that name, or otherwise if there is none.
func (n *NodeProto) IntOr(name string, otherwise int64) int64 {
	if a := n.FindAttribute(name); a != nil {
		return a.GetI()
	}
	return otherwise
}

// FloatOr returns the float attribute of that name, or otherwise if there is none.
func (n *NodeProto) FloatOr(name string, otherwise float32) float32 {
	if a := n.FindAttribute(name); a != nil {
		return a.GetF()
	}
	return otherwise
}

// In returns the name of input i, empty if it is omitted.
func (n *NodeProto) In(i int) string {
	if i < len(n.Input) {
		return n.Input[i]
	}
	return ""
}

// Out returns the name of output i, empty if it is omitted.
func (n *NodeProto) Out(i int) string {
	if i < len(n.Output) {
		return n.Output[i]
	}
	return ""
}

// IsStandard reports whether the node's operator belongs to ONNX itself and not to an extension.
func (n *NodeProto) IsStandard() bool { return n.GetDomain() == "" || n.GetDomain() == "ai.onnx" }

// Subgraphs returns the graphs in the node's attributes (If, Loop, Scan).
func (n *NodeProto) Subgraphs() []*GraphProto {
	var graphs []*GraphProto
	for _, a := range n.Attribute {
		if a.G != nil {
			graphs = append(graphs, a.G)
		}
		graphs = append(graphs, a.Graphs...)
	}
	return graphs
}

// AllInputs returns every tensor that the node reads: its inputs and the outer tensors that its subgraphs use.
func (n *NodeProto) AllInputs() []string {
	reads := make([]string, 0, len(n.Input))
	for _, name := range n.Input {
		if name != "" {
			reads = append(reads, name)
		}
	}
	for _, g := range n.Subgraphs() {
		reads = append(reads, captures(g)...)
	}
	return reads
}

func captures(g *GraphProto) []string {
	own := make(map[string]bool)
	for _, v := range g.Input {
		own[v.GetName()] = true
	}
	for _, t := range g.Initializer {
		own[t.GetName()] = true
	}
	var outside []string
	for _, n := range g.Node {
		for _, name := range n.AllInputs() {
			if !own[name] {
				outside = append(outside, name)
			}
		}
		for _, name := range n.Output {
			own[name] = true
		}
	}
	for _, v := range g.Output {
		if !own[v.GetName()] {
			outside = append(outside, v.GetName())
		}
	}
	return outside
}

// Index maps the tensors of a graph to their producers and readers at the time of NewIndex. Nodes of subgraphs count as readers only.
type Index struct {
	Producer    map[string]*NodeProto
	Readers     map[string][]*NodeProto // in the graph's order, a node once per read
	Initializer map[string]*TensorProto
	Outputs     map[string]bool // outputs of the graph
	taken       map[string]bool // names of all tensors
}

// NewIndex returns the index of a graph.
func NewIndex(g *GraphProto) *Index {
	x := &Index{
		Producer:    make(map[string]*NodeProto, len(g.Node)),
		Readers:     make(map[string][]*NodeProto, len(g.Node)),
		Initializer: make(map[string]*TensorProto, len(g.Initializer)),
		Outputs:     make(map[string]bool, len(g.Output)),
		taken:       make(map[string]bool, len(g.Node)),
	}
	for _, values := range [][]*ValueInfoProto{g.Input, g.Output, g.ValueInfo} {
		for _, v := range values {
			x.taken[v.GetName()] = true
		}
	}
	for _, t := range g.Initializer {
		x.Initializer[t.GetName()], x.taken[t.GetName()] = t, true
	}
	for _, n := range g.Node {
		for _, name := range n.Output {
			if name != "" {
				x.Producer[name], x.taken[name] = n, true
			}
		}
		for _, name := range n.AllInputs() {
			x.Readers[name] = append(x.Readers[name], n)
		}
	}
	for _, v := range g.Output {
		x.Outputs[v.GetName()] = true
	}
	return x
}

// Constant returns the value of an initializer or of a Constant node's output, nil for other tensors.
func (x *Index) Constant(name string) *TensorProto {
	if t := x.Initializer[name]; t != nil {
		return t
	}
	n := x.Producer[name]
	if n == nil || n.GetOpType() != "Constant" || !n.IsStandard() {
		return nil
	}
	for _, a := range n.Attribute {
		switch a.GetName() {
		case "value":
			return a.T
		case "value_float":
			return NewFloats(name, []float32{a.GetF()})
		case "value_floats":
			return NewFloats(name, a.Floats, int64(len(a.Floats)))
		case "value_int":
			return NewInts(name, []int64{a.GetI()})
		case "value_ints":
			return NewInts(name, a.Ints, int64(len(a.Ints)))
		}
	}
	return nil
}

// SoleReader returns the only reader of a tensor, nil if there is none, more than one, or the tensor is an output of the graph.
func (x *Index) SoleReader(name string) *NodeProto {
	if x.Outputs[name] || len(x.Readers[name]) != 1 {
		return nil
	}
	return x.Readers[name][0]
}

// UniqueName appends underscores to name until it is unused, and reserves it.
func (x *Index) UniqueName(name string) string {
	for x.taken[name] {
		name += "_"
	}
	x.taken[name] = true
	return name
}

// NewValueInfo describes a tensor. A dimension of -1 is dynamic; with a nil shape the rank is unknown.
func NewValueInfo(name string, kind TensorProto_DataType, shape []int64) *ValueInfoProto {
	tensor := &TypeProto_Tensor{ElemType: proto.Int32(int32(kind))}
	if shape != nil {
		tensor.Shape = &TensorShapeProto{}
		for _, size := range shape {
			d := &TensorShapeProto_Dimension{}
			if size >= 0 {
				d.Value = &TensorShapeProto_Dimension_DimValue{DimValue: size}
			}
			tensor.Shape.Dim = append(tensor.Shape.Dim, d)
		}
	}
	return &ValueInfoProto{Name: &name, Type: &TypeProto{Value: &TypeProto_TensorType{TensorType: tensor}}}
}
