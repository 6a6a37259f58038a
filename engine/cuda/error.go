package cuda

// #include "ei_cuda.h"
import "C"

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/edge-infer/edge-infer/engine"
)

// Driver codes that callers handle, as engine.Error.Code of errors from this package.
const (
	CodeOutOfMemory  = 2
	CodeNotReady     = 600
	CodeNotSupported = 801
)

// ContextHint is the remedy of an error of the kind engine.ErrContextLost.
const ContextHint = "the GPU needs a new process; if it recurs, check dmesg for NVRM or nvgpu lines"

// hint returns the remedy of a driver code.
func hint(code int) string {
	if C.ei_cuda_context_lost(C.int(code)) != 0 {
		return ContextHint
	}
	switch code {
	case CodeOutOfMemory:
		return "free GPU memory: close other programs that use the GPU, or use a smaller model, batch or number of slots"
	case 34:
		return "a stub library was loaded: remove the CUDA toolkit's stubs directory from LD_LIBRARY_PATH"
	case 46:
		return "another process holds the GPU in exclusive mode: stop it, or run nvidia-smi -c DEFAULT"
	case 100, 101:
		return "no NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with --gpus all or --runtime nvidia"
	case 200, 209, 218, 222:
		return "the driver is too old for this program's kernels: update the driver or JetPack"
	case 802:
		return "the GPU is not ready yet: is nvidia-fabricmanager running?"
	case 803, 999:
		return "the driver library and the kernel module do not fit or the module hangs: reboot, then check nvidia-smi"
	case 804:
		return "remove the cuda-compat package from LD_LIBRARY_PATH: this GPU does not support it"
	}
	return ""
}

func missingDriver(why string) error {
	return &engine.Error{
		Op: "open", Backend: "cuda", Kind: engine.ErrUnavailable, Message: "no CUDA driver: " + why,
		Hint: "install the NVIDIA driver, or set " + LibraryEnvironment + " to the path of libcuda.so.1",
	}
}

func initFailure(code int, path string) error {
	return &engine.Error{
		Op: "open", Backend: "cuda", Code: code, Kind: engine.ErrUnavailable,
		Message: fmt.Sprintf("the driver %s does not start: %s", path, describe(code)), Hint: hint(code),
	}
}

func oldDriver(version int) error {
	return &engine.Error{
		Op: "open", Backend: "cuda", Kind: engine.ErrUnavailable,
		Message: fmt.Sprintf("the driver supports CUDA %s, %s or newer is needed", VersionText(version), VersionText(MinimumDriver)),
		Hint:    "update to JetPack 5.1 or newer, or to NVIDIA driver 470 or newer",
	}
}

// VersionText formats a CUDA version: 12020 is 12.2.
func VersionText(version int) string { return fmt.Sprintf("%d.%d", version/1000, version%1000/10) }

// describe returns the driver's text for a code.
func describe(code int) string {
	var text *C.char
	if C.cuGetErrorString(C.int(code), &text) == 0 && text != nil {
		return fmt.Sprintf("%s (%d)", C.GoString(text), code)
	}
	switch code {
	case 3:
		return "not initialized (3)"
	case CodeOutOfMemory:
		return "out of memory (2)"
	case 34:
		return "stub library (34)"
	case 100:
		return "no device (100)"
	case CodeNotSupported:
		return "not supported by this driver (801)"
	}
	return fmt.Sprintf("error %d", code)
}

// failure returns the error of a driver call, or nil for code 0. Its kind is engine.ErrContextLost or engine.ErrUnavailable, since any
// failed set-up makes the backend unavailable.
func failure(op, subject string, code int) error {
	if code == 0 {
		return nil
	}
	kind := engine.ErrUnavailable
	if C.ei_cuda_context_lost(C.int(code)) != 0 {
		kind = engine.ErrContextLost
	}
	return &engine.Error{Op: op, Backend: "cuda", Code: code, Kind: kind, Message: subject + ": " + describe(code), Hint: hint(code)}
}

// wrap converts an error of gorgonia.org/cu, whose unexported type is an integer.
func wrap(op, subject string, err error) error {
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if value := reflect.ValueOf(cause); value.CanInt() {
			return failure(op, subject, int(value.Int()))
		}
	}
	if err == nil {
		return nil
	}
	return &engine.Error{Op: op, Backend: "cuda", Kind: engine.ErrUnavailable, Message: subject, Err: err}
}
