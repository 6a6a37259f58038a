package tensorrt

import (
	"encoding/binary"
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// checkModel validates the outermost fields of an ONNX file. TensorRT's parser accepts some truncated files as shorter models, and spends
// minutes on them.
func checkModel(file []byte) error {
	if len(file) == 0 {
		return newError("build", engine.ErrUnsupported, "name an .onnx file", "the model is empty")
	}
	damaged := func(at int, what string) error {
		return newError("build", engine.ErrUnsupported, "copy or export the model again", "damaged ONNX file: %s at byte %d of %d", what, at,
			len(file))
	}
	for at := 0; at < len(file); {
		tag, n := binary.Uvarint(file[at:])
		if n <= 0 || tag>>3 == 0 {
			return damaged(at, "invalid field")
		}
		start := at
		at += n
		switch tag & 7 {
		case 0:
			_, n := binary.Uvarint(file[at:])
			if n <= 0 {
				return damaged(start, "invalid varint")
			}
			at += n
		case 1:
			at += 8
		case 2:
			length, n := binary.Uvarint(file[at:])
			if n <= 0 {
				return damaged(start, "invalid length")
			}
			at += n + int(min(length, uint64(len(file))))
		case 5:
			at += 4
		default:
			return damaged(start, "unknown field type")
		}
		if at > len(file) {
			return damaged(start, fmt.Sprintf("field %d is truncated", tag>>3))
		}
	}
	return nil
}
