// Package quantize makes a model smaller and faster and proves that it still detects: it converts ONNX models to float16 and to 8-bit
// integers with QuantizeLinear and DequantizeLinear nodes where TensorRT wants them, collects the value ranges that this needs, and
// compares the result with the model that it came from.
//
// The steps of INT8 are Prepare, NewPlan, Collector.Run, Plan.Apply and Gate.Judge; Search repeats the last two until the gate passes.
package quantize

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// unsupported is the error of a model or a file that cannot be worked on.
func unsupported(op, message, hint string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: "quantize", Kind: engine.ErrUnsupported, Message: fmt.Sprintf(message, arguments...), Hint: hint}
}
