package engine

import (
	"fmt"
	"unsafe"
)

// DataType of a tensor's elements.
type DataType uint8

// The element types that cross the engine's border. Little endian, Float16 as IEEE 754 binary16.
const (
	Float32 DataType = iota
	Float16
	Int8
	Uint8
	Int32
	Int64
	Bool
)

// Size is the number of bytes of one element.
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

// TensorInfo describes an input or output of a model. A dimension that may vary is -1.
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

// Elements is the product of the dimensions.
func Elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// Float32s views the data as float32; nil when the type is another one or the memory is not aligned.
func (t *Tensor) Float32s() []float32 {
	if t.Type != Float32 || len(t.Data) < 4 || uintptr(unsafe.Pointer(&t.Data[0]))%4 != 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&t.Data[0])), len(t.Data)/4)
}
