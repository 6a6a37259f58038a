package tensorrt

// #include "shim.h"
import "C"

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// kind returns the error kind of a shim code, nil for others.
func kind(code int) error {
	switch code {
	case C.EI_LOAD:
		return engine.ErrUnavailable
	case C.EI_UNSUPPORTED, C.EI_MODEL:
		return engine.ErrUnsupported
	case C.EI_PLAN:
		return engine.ErrPlanMismatch
	case C.EI_SHAPE:
		return engine.ErrShape
	case C.EI_CONTEXT:
		return engine.ErrContextLost
	}
	return nil
}

func hint(code int) string {
	switch code {
	case C.EI_PLAN:
		return "run edge-infer build again on this device"
	case C.EI_MEMORY:
		return "free GPU memory: close other programs that use the GPU, or use a smaller model, batch, workspace or number of slots"
	case C.EI_CUDA:
		return "open the engine again; if it recurs, check dmesg for NVRM or nvgpu lines"
	case C.EI_CONTEXT:
		return cuda.ContextHint
	}
	return ""
}

// shimError converts an error of the shim.
func shimError(op string, e *C.ei_error) *engine.Error {
	code := int(e.code)
	return &engine.Error{
		Op: op, Backend: Name, Code: code, Kind: kind(code), Message: C.GoString(&e.message[0]), Hint: hint(code),
	}
}

// newError returns an error of this package.
func newError(op string, kind error, hint, format string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: Name, Kind: kind, Message: fmt.Sprintf(format, arguments...), Hint: hint}
}
