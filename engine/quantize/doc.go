// Package quantize converts ONNX models to FP16 or INT8 and checks that they still detect. INT8 models have QuantizeLinear and
// DequantizeLinear nodes where TensorRT expects them; the package measures the value ranges that they need, and compares the detections of
// the result with those of the original model.
//
// The steps of INT8 are Prepare, NewPlan, Collector.Run, Plan.Apply and Gate.Judge; Search repeats the last two until the gate passes.
package quantize

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// unsupported returns the error of a model or a file that cannot be processed.
func unsupported(op, message, hint string, arguments ...any) error {
	return &engine.Error{Op: op, Backend: "quantize", Kind: engine.ErrUnsupported, Message: fmt.Sprintf(message, arguments...), Hint: hint}
}
