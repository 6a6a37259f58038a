package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"
)

// elementBits returns the width of a type in raw data, 0 for strings and unknown types.
func elementBits(t TensorProto_DataType) int64 {
	switch t {
	case TensorProto_UINT4, TensorProto_INT4, TensorProto_FLOAT4E2M1:
		return 4
	case TensorProto_UINT8, TensorProto_INT8, TensorProto_BOOL, TensorProto_FLOAT8E4M3FN, TensorProto_FLOAT8E4M3FNUZ, TensorProto_FLOAT8E5M2,
		TensorProto_FLOAT8E5M2FNUZ:
		return 8
	case TensorProto_UINT16, TensorProto_INT16, TensorProto_FLOAT16, TensorProto_BFLOAT16:
		return 16
	case TensorProto_FLOAT, TensorProto_INT32, TensorProto_UINT32:
		return 32
	case TensorProto_DOUBLE, TensorProto_INT64, TensorProto_UINT64, TensorProto_COMPLEX64:
		return 64
	case TensorProto_COMPLEX128:
		return 128
	}
	return 0
}

// elements returns the product of the dimensions, or an error if it is negative or exceeds memory.
func (t *TensorProto) elements() (int64, error) {
	n := int64(1)
	for _, d := range t.GetDims() {
		if d < 0 || (d > 0 && n > math.MaxInt32/d) {
			return 0, fmt.Errorf("invalid shape %v", t.Dims)
		}
		n *= d
	}
	return n, nil
}

func (t *TensorProto) byteSize() (int64, error) {
	n, err := t.elements()
	if err != nil {
		return 0, err
	}
	bits := elementBits(TensorProto_DataType(t.GetDataType()))
	if bits == 0 {
		return 0, fmt.Errorf("elements of %v have no fixed size", TensorProto_DataType(t.GetDataType()))
	}
	return (n*bits + 7) / 8, nil
}

// count returns the number of values of a tensor. stored is the number of values in its typed field, used if it has no raw data. It returns
// an error if the type is not one of kinds, which what describes, or if data is missing.
func (t *TensorProto) count(what string, stored int, kinds ...TensorProto_DataType) (int64, error) {
	n, err := t.elements()
	if err != nil {
		return 0, fmt.Errorf("tensor %q: %w", t.GetName(), err)
	}
	kind := TensorProto_DataType(t.GetDataType())
	switch {
	case !slices.Contains(kinds, kind):
		return 0, fmt.Errorf("tensor %q: holds %v, not %s", t.GetName(), kind, what)
	case t.GetDataLocation() == TensorProto_EXTERNAL:
		return 0, fmt.Errorf("tensor %q: its data file was not read", t.GetName())
	case len(t.RawData) > 0:
		stored = len(t.RawData) / int(elementBits(kind)/8)
	}
	if int64(stored) != n {
		return 0, fmt.Errorf("tensor %q: shape %v needs %d values, %d are there", t.GetName(), t.Dims, n, stored)
	}
	return n, nil
}

// Floats returns a copy of the values of a float32 or float16 tensor as float32. The data must be embedded.
func (t *TensorProto) Floats() ([]float32, error) {
	kind, stored := TensorProto_DataType(t.GetDataType()), len(t.FloatData)
	if kind == TensorProto_FLOAT16 {
		stored = len(t.Int32Data)
	}
	n, err := t.count("floats", stored, TensorProto_FLOAT, TensorProto_FLOAT16)
	if err != nil {
		return nil, err
	}
	values := make([]float32, n)
	for i := range values {
		switch {
		case kind == TensorProto_FLOAT && len(t.RawData) > 0:
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.RawData[4*i:]))
		case kind == TensorProto_FLOAT:
			values[i] = t.FloatData[i]
		case len(t.RawData) > 0:
			values[i] = FromHalf(binary.LittleEndian.Uint16(t.RawData[2*i:]))
		default:
			values[i] = FromHalf(uint16(t.Int32Data[i]))
		}
	}
	return values, nil
}

// Ints returns a copy of the values of an int64, int32 or bool tensor. The data must be embedded.
func (t *TensorProto) Ints() ([]int64, error) {
	kind, stored := TensorProto_DataType(t.GetDataType()), len(t.Int32Data)
	if kind == TensorProto_INT64 {
		stored = len(t.Int64Data)
	}
	n, err := t.count("integers", stored, TensorProto_INT64, TensorProto_INT32, TensorProto_BOOL)
	if err != nil {
		return nil, err
	}
	values := make([]int64, n)
	for i := range values {
		switch {
		case len(t.RawData) > 0 && kind == TensorProto_INT64:
			values[i] = int64(binary.LittleEndian.Uint64(t.RawData[8*i:]))
		case len(t.RawData) > 0 && kind == TensorProto_INT32:
			values[i] = int64(int32(binary.LittleEndian.Uint32(t.RawData[4*i:])))
		case len(t.RawData) > 0:
			values[i] = int64(t.RawData[i])
		case kind == TensorProto_INT64:
			values[i] = t.Int64Data[i]
		default:
			values[i] = int64(t.Int32Data[i])
		}
	}
	return values, nil
}

// SetFloats replaces the type and the values by float32 values; name and shape stay.
func (t *TensorProto) SetFloats(values []float32) {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	t.setRaw(TensorProto_FLOAT, raw)
}

// SetHalves replaces the type and the values by float16 bit patterns; name and shape stay.
func (t *TensorProto) SetHalves(values []uint16) {
	raw := make([]byte, 0, 2*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint16(raw, v)
	}
	t.setRaw(TensorProto_FLOAT16, raw)
}

func (t *TensorProto) setRaw(kind TensorProto_DataType, raw []byte) {
	t.DataType, t.RawData = proto.Int32(int32(kind)), raw
	t.FloatData, t.Int32Data, t.Int64Data = nil, nil, nil
	t.ExternalData, t.DataLocation = nil, nil
}

// NewRaw returns a tensor of little-endian values; without dims it is a scalar.
func NewRaw(name string, kind TensorProto_DataType, raw []byte, dims ...int64) *TensorProto {
	t := &TensorProto{Name: &name, Dims: dims}
	t.setRaw(kind, raw)
	return t
}

// NewFloats returns a float32 tensor; without dims it is a scalar.
func NewFloats(name string, values []float32, dims ...int64) *TensorProto {
	t := &TensorProto{Name: &name, Dims: dims}
	t.SetFloats(values)
	return t
}

// NewInts returns an int64 tensor; without dims it is a scalar.
func NewInts(name string, values []int64, dims ...int64) *TensorProto {
	raw := make([]byte, 0, 8*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	t := &TensorProto{Name: &name, Dims: dims}
	t.setRaw(TensorProto_INT64, raw)
	return t
}

// NewInt32s returns an int32 tensor; without dims it is a scalar.
func NewInt32s(name string, values []int32, dims ...int64) *TensorProto {
	raw := make([]byte, 0, 4*len(values))
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(v))
	}
	t := &TensorProto{Name: &name, Dims: dims}
	t.setRaw(TensorProto_INT32, raw)
	return t
}

// NewUint8 returns a scalar uint8 tensor.
func NewUint8(name string, value uint8) *TensorProto {
	t := &TensorProto{Name: &name}
	t.setRaw(TensorProto_UINT8, []byte{value})
	return t
}

// NewInt8s returns an int8 tensor; without dims it is a scalar.
func NewInt8s(name string, values []int8, dims ...int64) *TensorProto {
	raw := make([]byte, len(values))
	for i, v := range values {
		raw[i] = byte(v)
	}
	t := &TensorProto{Name: &name, Dims: dims}
	t.setRaw(TensorProto_INT8, raw)
	return t
}
