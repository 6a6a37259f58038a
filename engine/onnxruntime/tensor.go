package onnxruntime

import (
	"fmt"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/edge-infer/edge-infer/engine"
)

var elementTypes = [...]ort.TensorElementDataType{
	engine.Float32: ort.TensorElementDataTypeFloat,
	engine.Float16: ort.TensorElementDataTypeFloat16,
	engine.Int8:    ort.TensorElementDataTypeInt8,
	engine.Uint8:   ort.TensorElementDataTypeUint8,
	engine.Int32:   ort.TensorElementDataTypeInt32,
	engine.Int64:   ort.TensorElementDataTypeInt64,
	engine.Bool:    ort.TensorElementDataTypeBool,
}

// content returns the memory of a tensor as bytes, valid until the tensor is destroyed.
func content(value ort.Value) ([]byte, error) {
	switch t := value.(type) {
	case *ort.Tensor[float32]:
		return view(t.GetData()), nil
	case *ort.Tensor[int8]:
		return view(t.GetData()), nil
	case *ort.Tensor[uint8]:
		return t.GetData(), nil
	case *ort.Tensor[int32]:
		return view(t.GetData()), nil
	case *ort.Tensor[int64]:
		return view(t.GetData()), nil
	case *ort.Tensor[bool]:
		return view(t.GetData()), nil
	}
	return nil, fmt.Errorf("output of type %T", value)
}

func view[T any](elements []T) []byte {
	if len(elements) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&elements[0])), len(elements)*int(unsafe.Sizeof(elements[0])))
}
