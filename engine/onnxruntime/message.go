package onnxruntime

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// logPrefixes matches error codes and source locations in messages of ONNX Runtime, with or without a function's signature.
var logPrefixes = regexp.MustCompile(`Error creating C session(?: from file)?: |\[ONNXRuntimeError\] : \d+ : \w+ : |` +
	`\S+\.(?:cc|h):\d+ (?:(?:[^():]|::)+\([^()]*\)(?: const)? |\S+ )`)

// cleanMessage returns the library's message in one line, without error codes and source locations.
func cleanMessage(text string) string {
	return strings.TrimSpace(logPrefixes.ReplaceAllString(oneLine(text), ""))
}

// remedy returns the hint for a well-formed model that the library rejects: missing weights, custom operators, or a version newer than the
// library.
func remedy(file *onnx.Model, message string) string {
	if external := file.ExternalFiles(); len(external) > 0 && strings.Contains(message, "xternal") {
		return "put " + strings.Join(external, " and ") + ", which has the weights, into the model's directory"
	}
	for _, node := range file.Proto.Graph.Node {
		if !node.IsStandard() {
			return fmt.Sprintf("the model uses operator %s of %s; export it with standard operators only", node.GetOpType(), node.GetDomain())
		}
	}
	switch {
	case strings.Contains(message, "IR version"):
		return "set ir_version of the file to 10 with Python's onnx, or use a newer ONNX Runtime"
	case strings.Contains(message, "Invalid model"):
		return "export or download the file again"
	case file.Opset() <= 17:
		return "export it again without that operator, or use a newer ONNX Runtime"
	}
	return fmt.Sprintf("export it again with opset=17 instead of %d, or use a newer ONNX Runtime", file.Opset())
}
