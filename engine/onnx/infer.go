package onnx

import (
	"fmt"
	"math"
)

// UnknownDim is a dimension that depends on the model's input.
const UnknownDim = -1

// Value is the statically known part of a tensor.
type Value struct {
	Type TensorProto_DataType // UNDEFINED if unknown
	// Shape has UnknownDim for dynamic dimensions and is nil if the rank is unknown.
	Shape []int64
	// numbers are the elements of a small integer tensor, such as the shape for a Reshape, with openNumber for unknown elements. Nil if no
	// element is known.
	numbers []int64
}

const (
	openNumber = math.MinInt64
	// maxNumbers limits the length of these integer tensors; shapes and axes are far shorter.
	maxNumbers = 1024
	// maxSize is the largest known dimension; larger ones become UnknownDim, so that products cannot overflow.
	maxSize = 1 << 40
)

// String returns type and shape, such as "FLOAT[1,3,?,640]".
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

// Infer returns type and shape of the main graph's tensors by name, for the operators of detectors. Outputs of other operators come from
// the file's value_info or are missing.
func (m *Model) Infer() map[string]Value {
	g := m.Proto.Graph
	f := &inference{values: make(map[string]Value, len(g.Node)), index: NewIndex(g), opset: m.Opset()}
	declared := make(map[string]Value)
	for _, list := range [][]*ValueInfoProto{g.ValueInfo, g.Output, g.Input} {
		for _, v := range list {
			declared[v.GetName()] = described(v)
		}
	}
	for _, v := range g.Input {
		f.values[v.GetName()] = declared[v.GetName()]
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
			if hint, ok := declared[name]; ok {
				value = value.complete(hint)
			}
			if value.Type != TensorProto_UNDEFINED || value.Shape != nil {
				f.values[name] = value
			}
		}
	}
	return f.values
}

// described returns the type and shape of a ValueInfo.
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

// tensorValue returns the value of an initializer or a constant.
func tensorValue(t *TensorProto) Value {
	value := Value{Type: TensorProto_DataType(t.GetDataType()), Shape: append(make([]int64, 0, len(t.GetDims())), t.GetDims()...)}
	if n, err := t.elements(); err == nil && n <= maxNumbers && len(t.GetDims()) <= 1 {
		if numbers, err := t.Ints(); err == nil {
			value.numbers = numbers
		}
	}
	return value.bounded()
}

// bounded removes impossible facts: sizes below 0 or beyond maxSize, more than 64 dimensions, too many numbers.
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

// complete fills the unknown parts of v from hint.
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

// inference is the state of one pass over a graph.
type inference struct {
	values map[string]Value
	index  *Index
	opset  int
}

// in returns the value of input i, the zero Value if it is omitted or unknown. Its slices are shared and must not be changed.
func (f *inference) in(n *NodeProto, i int) Value { return f.values[n.In(i)] }

// list returns an integer list that newer operators have as input 1 and older ones as an attribute; nil if it is unknown or omitted.
func (f *inference) list(n *NodeProto, attribute string) []int64 {
	if a := n.FindAttribute(attribute); a != nil {
		return a.Ints
	}
	return f.fixed(n, 1)
}

// fixed returns input i as integers if all of them are known, otherwise nil.
func (f *inference) fixed(n *NodeProto, i int) []int64 {
	numbers := f.in(n, i).numbers
	for _, v := range numbers {
		if v == openNumber {
			return nil
		}
	}
	return numbers
}

// infer returns the values of the node's outputs.
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

// axis resolves a negative axis and reports whether it is within the rank.
func axis(a int64, rank int) (int, bool) {
	if a < 0 {
		a += int64(rank)
	}
	return int(a), a >= 0 && a < int64(rank)
}

// unknownShape returns a shape with unknown dimensions.
func unknownShape(rank int) []int64 {
	shape := make([]int64, rank)
	for i := range shape {
		shape[i] = UnknownDim
	}
	return shape
}

// cloneShape returns a copy of the shape; nil stays nil.
func cloneShape(shape []int64) []int64 {
	if shape == nil {
		return nil
	}
	return append(make([]int64, 0, len(shape)), shape...)
}

// product returns the number of elements, UnknownDim if a dimension is unknown.
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

// broadcast combines two shapes by NumPy's rule; conflicting dimensions become unknown.
func broadcast(a, b []int64) []int64 {
	if a == nil || b == nil {
		return nil
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	shape := cloneShape(a)
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
