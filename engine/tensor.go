package engine

import (
	"fmt"
	"unsafe"
)

// DataType is the element type of a tensor.
type DataType uint8

// The supported element types: little endian, Float16 as IEEE 754 binary16.
const (
	Float32 DataType = iota
	Float16
	Int8
	Uint8
	Int32
	Int64
	Bool
)

// Size returns the number of bytes of one element.
func (t DataType) Size() int {
	switch t {
	case Float32, Int32:
		return 4
	case Float16:
		return 2
	case Int64:
		return 8
	}
	return 1
}

// String returns the name that ONNX uses.
func (t DataType) String() string {
	names := [...]string{"float32", "float16", "int8", "uint8", "int32", "int64", "bool"}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("DataType(%d)", uint8(t))
}

// TensorInfo describes an input or output of a model. A variable dimension is -1. The shape of a scalar is empty, that of a tensor of
// unknown rank is nil.
type TensorInfo struct {
	Name  string
	Type  DataType
	Shape []int64
}

// Tensor is dense, row-major data with its shape.
type Tensor struct {
	Name  string
	Type  DataType
	Shape []int64
	Data  []byte
}

// Elements returns the product of the dimensions.
func Elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// Float32s returns the data as float32 without copying; nil if the type differs or the memory is not aligned.
func (t *Tensor) Float32s() []float32 {
	if t.Type != Float32 || len(t.Data) < 4 || uintptr(unsafe.Pointer(&t.Data[0]))%4 != 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&t.Data[0])), len(t.Data)/4)
}

// CheckTensors checks tensors against a model's inputs: every input exactly once, element type, rank, fixed dimensions and memory size.
// The error is an *Error that is ErrShape.
func CheckTensors(inputs []TensorInfo, tensors []Tensor) error {
	bad := func(format string, arguments ...any) error {
		return &Error{Op: "submit", Kind: ErrShape, Message: fmt.Sprintf(format, arguments...)}
	}
	for i := range inputs {
		info := &inputs[i]
		found := -1
		for j := range tensors {
			if tensors[j].Name != info.Name {
				continue
			}
			if found >= 0 {
				return bad("input %q is given twice", info.Name)
			}
			found = j
		}
		if found < 0 {
			return bad("input %q is missing", info.Name)
		}
		t := &tensors[found]
		if t.Type != info.Type {
			return bad("input %q is %v, the model takes %v", info.Name, t.Type, info.Type)
		}
		if len(t.Shape) != len(info.Shape) {
			return bad("input %q has shape %v, the model takes %v", info.Name, t.Shape, info.Shape)
		}
		for d, n := range t.Shape {
			if n < 1 || info.Shape[d] >= 0 && n != info.Shape[d] {
				return bad("input %q has shape %v, the model takes %v", info.Name, t.Shape, info.Shape)
			}
		}
		size := int64(t.Type.Size())
		for _, n := range t.Shape {
			if size > int64(len(t.Data))/n {
				return bad("input %q has %d bytes, too few for %v of %v", info.Name, len(t.Data), t.Type, t.Shape)
			}
			size *= n
		}
		if size != int64(len(t.Data)) {
			return bad("input %q has %d bytes instead of %d for %v of %v", info.Name, len(t.Data), size, t.Type, t.Shape)
		}
	}
	if len(tensors) != len(inputs) {
		for _, t := range tensors {
			if !named(inputs, t.Name) {
				return bad("the model has no input %q", t.Name)
			}
		}
	}
	return nil
}

func named(inputs []TensorInfo, name string) bool {
	for i := range inputs {
		if inputs[i].Name == name {
			return true
		}
	}
	return false
}
