package onnxruntime

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// The texts are those of ONNX Runtime 1.31.1.
func TestMessagesHaveARemedy(t *testing.T) {
	outside := &onnx.Model{Proto: &onnx.ModelProto{Graph: &onnx.GraphProto{Initializer: []*onnx.TensorProto{{
		DataLocation: onnx.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnx.StringStringEntryProto{{Key: new("location"), Value: new("weights.bin")}},
	}}}}}
	for _, test := range []struct{ text, message, remedy string }{
		{
			text: "Error creating C session: /onnxruntime_src/onnxruntime/core/graph/model.cc:256 onnxruntime::Model::Model(onnx::ModelProto&&, " +
				"const onnxruntime::PathString&, const onnxruntime::ModelOptions&) Unsupported model IR version: 99, max supported IR version: 13",
			message: "Unsupported model IR version: 99, max supported IR version: 13",
			remedy:  "set ir_version of the file to 10 with Python's onnx, or use a newer ONNX Runtime",
		},
		{
			text: "Error creating C session from file: External data path validation failed for initializer: model.0.conv.weight.\nError: " +
				"tensorprotoutils.cc:461 ValidateExternalDataPathFromDir External data path does not exist: \"/a/weights.bin\"",
			message: "External data path validation failed for initializer: model.0.conv.weight. Error: External data path does not exist: " +
				"\"/a/weights.bin\"",
			remedy: "put weights.bin, which has the weights, into the model's directory",
		},
		{
			text: "Error creating C session from file: Exception during initialization: /onnxruntime_src/onnxruntime/core/optimizer/initializer.cc:79 " +
				"onnxruntime::Initializer::Initializer(const onnxruntime::Graph&, const std::filesystem::__cxx11::path&, bool) [ONNXRuntimeError] : 1 " +
				": FAIL : tensorprotoutils.cc:1876 GetExtDataFromTensorProto External initializer: a offset: 0 size to read: 1728 given " +
				"file_length: 1000 are out of bounds or can not be read in full.",
			message: "Exception during initialization: External initializer: a offset: 0 size to read: 1728 given file_length: 1000 are out of " +
				"bounds or can not be read in full.",
			remedy: "put weights.bin, which has the weights, into the model's directory",
		},
		{
			text:    "Error creating C session: Invalid model. Node input 'x' is not a graph input.",
			message: "Invalid model. Node input 'x' is not a graph input.", remedy: "export or download the file again",
		},
	} {
		assert.Equal(t, test.message, cleanMessage(test.text))
		assert.Equal(t, test.remedy, remedy(outside, test.message))
	}
}
