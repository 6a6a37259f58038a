package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// constant writes a network that answers every image of 64x64 with the same number everywhere.
func constant(t *testing.T, value float32, shape []int64, metadata map[string]string) string {
	t.Helper()
	size := onnx.NewInts("shape", shape, int64(len(shape)))
	m := &onnx.Model{Proto: &onnx.ModelProto{
		IrVersion: proto.Int64(8), OpsetImport: []*onnx.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(13)}},
		Graph: &onnx.GraphProto{
			Name: proto.String("constant"), Initializer: []*onnx.TensorProto{size},
			Input:  []*onnx.ValueInfoProto{onnx.NewValueInfo("images", onnx.TensorProto_FLOAT, []int64{1, 3, 64, 64})},
			Output: []*onnx.ValueInfoProto{onnx.NewValueInfo("output0", onnx.TensorProto_FLOAT, shape)},
			Node: []*onnx.NodeProto{onnx.NewNode("ConstantOfShape", "constant", []string{"shape"}, []string{"output0"}, &onnx.AttributeProto{
				Name: proto.String("value"), Type: onnx.AttributeProto_TENSOR.Enum(), T: onnx.NewFloats("value", []float32{value}, 1),
			})},
		},
	}}
	for key, text := range metadata {
		m.SetMetadata(key, text)
	}
	path := filepath.Join(t.TempDir(), "network.onnx")
	data, err := m.Bytes()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestInspect(t *testing.T) {
	t.Parallel()
	output := programtest.Output(t, "inspect")
	assert.Contains(t, string(output), "\nhead          yolov8, [B,4+nc,N]: ")
	assert.Contains(t, string(output), "\nlabels        6: bolt, nut, washer, gear, bearing, spring\n")

	pose := constant(t, 0, []int64{1, 56, 84}, nil)
	command := programtest.Command(t, "inspect", pose, "--json")
	output, err := command.Output()
	require.Error(t, err)
	require.Equal(t, 1, command.ProcessState.ExitCode())
	var d predict.Description
	require.NoError(t, json.Unmarshal(output, &d), "%s", output)
	assert.Equal(t, pose, d.Model)
	assert.Nil(t, d.Head)
	assert.Equal(t, "output0 [1 56 84] looks like yolov8, but no class names in the file: is this a detection, pose or mask model? "+
		"(detection: name its 52 classes with --labels FILE)", d.Problem)

	output = programtest.Output(t, "inspect", "--model", pose, "--layout", "yolov8")
	assert.Contains(t, string(output), "\nevidence      output0 [1 56 84]: the layout was selected\n")
}

// A network whose outputs have the right sizes and cannot be what they look like ends a command in one line, before it has told much
// nonsense.
func TestNonsenseStops(t *testing.T) {
	t.Parallel()
	network := constant(t, 5, []int64{1, 6, 84}, map[string]string{"task": "detect", "names": "{0: 'a', 1: 'b'}"})
	const want = " is not yolov8: 30 images in a row had scores that are not from 0 to 1 " +
		"(select another --layout; edge-infer inspect shows the outputs)"
	for _, arguments := range [][]string{
		{"infer", programtest.Video(t, 40), "--model", network, "--engine", "onnxruntime"},
		{"run", "--camera", programtest.Video(t, 200), "--model", network, "--engine", "onnxruntime", "--mqtt", "off", "--web", "off"},
	} {
		command := programtest.Command(t, arguments...)
		output, err := command.CombinedOutput()
		require.Error(t, err, "%s", output)
		assert.Equal(t, 1, command.ProcessState.ExitCode())
		assert.Contains(t, string(output), "model "+network+want, arguments[0])
	}
}
