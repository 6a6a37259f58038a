package onnx

import (
	"fmt"
	"math"
)

// UnknownDim is a dimension that depends on what the model is given.
const UnknownDim = -1

// Value is what is known of a tensor before the model runs.
type Value struct {
	Type TensorProto_DataType // UNDEFINED when nothing is known
	// Shape has Unknown for open dimensions and is nil when even the rank is open.
	Shape []int64
	// numbers are the elements of a small integer tensor, such as the shape that a Reshape is given; openNumber for one that is not known.
	// Nil when nothing is known of them.
	numbers []int64
}

const (
	openNumber = math.MinInt64
	// maxNumbers bounds the integer tensors that are followed; shapes and axes are far shorter.
	maxNumbers = 1024
	// maxSize is the largest dimension that is followed; larger ones are Unknown, so that products cannot overflow.
	maxSize = 1 << 40
)

// String returns type and shape as "FLOAT[1,3,?,640]".
func (v Value) String() string {
	if v.Shape == nil {
		return v.Type.String() + "[...]"
	}
	text := v.Type.String() + "["
	for i, d := range v.Shape {
		if i > 0 {
			text += ","
		}
		if d == UnknownDim {
			text += "?"
		} else {
			text += fmt.Sprint(d)
		}
	}
	return text + "]"
}

func (v Value) rank() int { return len(v.Shape) }

// Infer computes type and shape of every tensor of the main graph that the operators of detectors give, by name. A tensor of an operator it
// does not know is taken from the file's own value_info, or left out. shapes gives inputs a fixed shape instead of the file's; nil keeps
// the file's.
func (m *Model) Infer(shapes map[string][]int64) map[string]Value {
	g := m.Proto.Graph
	f := &inference{values: make(map[string]Value, len(g.Node)), index: NewIndex(g), opset: m.Opset()}
	said := make(map[string]Value)
	for _, list := range [][]*ValueInfoProto{g.ValueInfo, g.Output, g.Input} {
		for _, v := range list {
			said[v.GetName()] = described(v)
		}
	}
	for _, v := range g.Input {
		value := said[v.GetName()]
		if shape := shapes[v.GetName()]; shape != nil {
			value.Shape = shape
		}
		f.values[v.GetName()] = value
	}
	for _, t := range g.Initializer {
		f.values[t.GetName()] = tensorValue(t)
	}
	for _, n := range g.Node {
		results := f.infer(n)
		for i, name := range n.Output {
			if name == "" {
				continue
			}
			var value Value
			if i < len(results) {
				value = results[i].bounded()
			}
			if hint, ok := said[name]; ok && shapes == nil {
				value = value.complete(hint)
			} else if ok && value.Type == TensorProto_UNDEFINED {
				value.Type = hint.Type
			}
			if value.Type != TensorProto_UNDEFINED || value.Shape != nil {
				f.values[name] = value
			}
		}
	}
	return f.values
}

// described is what a ValueInfo says.
func described(v *ValueInfoProto) Value {
	tensor := v.GetType().GetTensorType()
	value := Value{Type: TensorProto_DataType(tensor.GetElemType())}
	if tensor.GetShape() != nil {
		value.Shape = make([]int64, 0, len(tensor.Shape.Dim))
		for _, d := range tensor.Shape.Dim {
			size := int64(UnknownDim)
			if set, ok := d.Value.(*TensorShapeProto_Dimension_DimValue); ok && set.DimValue >= 0 {
				size = set.DimValue
			}
			value.Shape = append(value.Shape, size)
		}
	}
	return value.bounded()
}

// tensorValue is what an initializer or a constant says.
func tensorValue(t *TensorProto) Value {
	value := Value{Type: TensorProto_DataType(t.GetDataType()), Shape: append(make([]int64, 0, len(t.GetDims())), t.GetDims()...)}
	if n, err := t.elements(); err == nil && n <= maxNumbers && len(t.GetDims()) <= 1 {
		if numbers, err := t.Ints(); err == nil {
			value.numbers = numbers
		}
	}
	return value.bounded()
}

// bounded replaces what no tensor can have: sizes below 0 or beyond maxSize, more than 64 dimensions, too many numbers.
func (v Value) bounded() Value {
	if len(v.Shape) > 64 {
		v.Shape = nil
	}
	for i, d := range v.Shape {
		if d < 0 || d > maxSize {
			v.Shape[i] = UnknownDim
		}
	}
	if len(v.numbers) > maxNumbers {
		v.numbers = nil
	}
	return v
}

// complete fills what v leaves open from hint.
func (v Value) complete(hint Value) Value {
	if v.Type == TensorProto_UNDEFINED {
		v.Type = hint.Type
	}
	if v.Shape == nil {
		v.Shape = hint.Shape
	} else if len(v.Shape) == len(hint.Shape) {
		for i, d := range v.Shape {
			if d == UnknownDim {
				v.Shape[i] = hint.Shape[i]
			}
		}
	}
	return v
}

// inference is the state of one walk over a graph.
type inference struct {
	values map[string]Value
	index  *Index
	opset  int
}

// in is what is known of input i; the zero Value when it is left out or unknown. Its slices are shared and must not be changed.
func (f *inference) in(n *NodeProto, i int) Value { return f.values[n.In(i)] }

// list is an integer list that newer operators take as input 1 and older ones as an attribute; nil when it is not known or not given.
func (f *inference) list(n *NodeProto, attribute string) []int64 {
	if a := n.FindAttribute(attribute); a != nil {
		return a.Ints
	}
	return f.fixed(n, 1)
}

// fixed is input i as integers that are all known, else nil.
func (f *inference) fixed(n *NodeProto, i int) []int64 {
	numbers := f.in(n, i).numbers
	for _, v := range numbers {
		if v == openNumber {
			return nil
		}
	}
	return numbers
}

// infer returns what is known of the node's outputs.
func (f *inference) infer(n *NodeProto) []Value {
	if !n.IsStandard() {
		return nil
	}
	rule, known := rules[n.GetOpType()]
	if !known {
		return nil
	}
	return rule(f, n)
}

// axis turns a negative axis around and reports whether it lies in the rank.
func axis(a int64, rank int) (int, bool) {
	if a < 0 {
		a += int64(rank)
	}
	return int(a), a >= 0 && a < int64(rank)
}

// open is a shape of which only the rank is known.
func open(rank int) []int64 {
	shape := make([]int64, rank)
	for i := range shape {
		shape[i] = UnknownDim
	}
	return shape
}

// copied is a shape of its own; nil stays nil.
func copied(shape []int64) []int64 {
	if shape == nil {
		return nil
	}
	return append(make([]int64, 0, len(shape)), shape...)
}

// product is the number of elements, Unknown when a dimension is.
func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		if d == UnknownDim {
			return UnknownDim
		}
		if d > 0 && n > maxSize/d {
			return UnknownDim
		}
		n *= d
	}
	return n
}

// broadcast joins two shapes by NumPy's rule; a conflict is left open.
func broadcast(a, b []int64) []int64 {
	if a == nil || b == nil {
		return nil
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	shape := copied(a)
	for i := range b {
		to := &shape[len(a)-len(b)+i]
		switch {
		case *to == 1:
			*to = b[i]
		case *to == UnknownDim && b[i] > 1:
			*to = b[i]
		case b[i] == UnknownDim && *to > 1, b[i] == 1, b[i] == *to:
		default:
			*to = UnknownDim
		}
	}
	return shape
}
