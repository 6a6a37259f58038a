package main

import (
	"encoding/json"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// classifier writes a network that gives these logits for a red image of any size, and 0 for a black one, through one more layer where
// last names it. Its labels are a, b, c and so on.
func classifier(t *testing.T, last string, logits ...float32) (path, labels string) {
	t.Helper()
	weights := make([]float32, 0, 3*len(logits))
	var names strings.Builder
	for i, logit := range logits {
		weights = append(weights, logit, 0, 0)
		names.WriteString(string(rune('a'+i)) + "\n")
	}
	classes := int64(len(logits))
	g := &onnx.GraphProto{
		Name: proto.String("classifier"), Initializer: []*onnx.TensorProto{onnx.NewFloats("weights", weights, classes, 3)},
		Input:  []*onnx.ValueInfoProto{onnx.NewValueInfo("images", onnx.TensorProto_FLOAT, []int64{1, 3, -1, -1})},
		Output: []*onnx.ValueInfoProto{onnx.NewValueInfo("scores", onnx.TensorProto_FLOAT, []int64{1, classes})},
		Node: []*onnx.NodeProto{
			onnx.NewNode("GlobalAveragePool", "pool", []string{"images"}, []string{"pooled"}),
			onnx.NewNode("Flatten", "flatten", []string{"pooled"}, []string{"flat"}),
			onnx.NewNode("Gemm", "classes", []string{"flat", "weights"}, []string{"logits"}, onnx.Int("transB", 1)),
		},
	}
	if last == "" {
		g.Node[2].Output[0] = "scores"
	} else {
		g.Node = append(g.Node, onnx.NewNode(last, "last", []string{"logits"}, []string{"scores"}))
	}
	data, err := (&onnx.Model{Proto: &onnx.ModelProto{
		IrVersion: proto.Int64(8), Graph: g, OpsetImport: []*onnx.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(13)}},
	}}).Bytes()
	require.NoError(t, err)
	dir := t.TempDir()
	path, labels = filepath.Join(dir, "classifier.onnx"), filepath.Join(dir, "labels.txt")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	require.NoError(t, os.WriteFile(labels, []byte(names.String()), 0o600))
	return path, labels
}

// red writes an image of one colour.
func red(t *testing.T, width, height int) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	draw.Draw(img, img.Bounds(), image.NewUniform(color.RGBA{R: 255, A: 255}), image.Point{}, draw.Src)
	path := filepath.Join(t.TempDir(), "red.png")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, png.Encode(file, img))
	require.NoError(t, file.Close())
	return path
}

// scores are what infer finds in an image, as "a .50 b .25".
func scores(t *testing.T, img string, arguments ...string) (labels string, values []float32) {
	t.Helper()
	command := programtest.Command(t, append([]string{"infer", img, "--engine", "onnxruntime", "--json"}, arguments...)...)
	output, err := command.Output()
	require.NoError(t, err, "%s", output)
	var seen infer.Seen
	require.NoError(t, json.Unmarshal(output, &seen), "%s", output)
	for _, d := range seen.Detections {
		labels += d.Label
		values = append(values, float32(d.Score))
	}
	return labels, values
}

// A classifier's best classes are the answer, however unsure it is; one whose classes do not exclude each other gives those over the
// threshold.
func TestClassifiers(t *testing.T) {
	t.Parallel()
	img := red(t, 40, 30)
	flat, labels := classifier(t, "", 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0)
	ultralytics := []string{"--labels", labels, "--preprocess", "ultralytics", "--imgsz", "32"}
	letters, values := scores(t, img, append(ultralytics, "--model", flat, "--confidence", "0.25")...)
	assert.Equal(t, "abcde", letters)
	assert.InDelta(t, 0.1823, values[0], 1e-3, "three quarters of the input are red, the rest is grey")
	letters, _ = scores(t, img, append(ultralytics, "--model", flat, "--top", "2")...)
	assert.Equal(t, "ab", letters)
	letters, _ = scores(t, img, append(ultralytics, "--model", flat, "--classes", "b,c")...)
	assert.Equal(t, "bc", letters)

	cropped := []string{"--labels", labels, "--preprocess", "{resize: crop, range: [0, 1]}", "--imgsz", "24x32", "--confidence", "0.4"}
	several, labels := classifier(t, "Sigmoid", 2, -2, 1, 0.5, 3, 0, -1)
	cropped[1] = labels
	letters, values = scores(t, img, append(cropped, "--model", several)...)
	assert.Equal(t, "eacdf", letters)
	assert.InDeltaSlice(t, []float32{0.9526, 0.8808, 0.7311, 0.6225, 0.5}, values, 1e-3)
	logits, _ := classifier(t, "", 2, -2, 1, 0.5, 3, 0, -1)
	letters, values = scores(t, img, append(cropped, "--model", logits, "--activation", "sigmoid")...)
	assert.Equal(t, "eacdf", letters)
	assert.InDeltaSlice(t, []float32{0.9526, 0.8808, 0.7311, 0.6225, 0.5}, values, 1e-3)
	kept := filepath.Join(t.TempDir(), "kept.onnx") // what quantize is told is in what it writes
	said, err := programtest.Command(t, "quantize", logits, "--labels", labels, "--preprocess", "{resize: crop, range: [0, 1]}",
		"--imgsz", "24x32", "--activation", "sigmoid", "--precision", "fp16", "--gate", "0", "--images", filepath.Dir(img),
		"-o", kept).CombinedOutput()
	require.NoError(t, err, "%s", said)
	letters, values = scores(t, img, "--model", kept, "--confidence", "0.4")
	assert.Equal(t, "eacdf", letters)
	assert.InDeltaSlice(t, []float32{0.9526, 0.8808, 0.7311, 0.6225, 0.5}, values, 1e-3)
	letters, values = scores(t, img, append(cropped, "--model", logits)...)
	assert.Equal(t, "eacdf", letters, "softmax: the best of all")
	assert.InDelta(t, 0.6024, values[0], 1e-3)

	output := programtest.Output(t, "inspect", several, "--engine", "onnxruntime", "--labels", labels,
		"--preprocess", "torchvision")
	assert.Contains(t, string(output), "\ngives         every class of the image that is over the threshold, each for itself\n")
	assert.Contains(t, string(output), "crop, shorter side 731, bilinear-antialias, pad 0, rgb, 0..1, mean 0.485 0.456 0.406, ")
}

// How images get into a network is refused in one line where it cannot be, wherever it is said.
func TestImagesThatCannotBe(t *testing.T) {
	t.Parallel()
	img := red(t, 40, 30)
	network, labels := classifier(t, "Softmax", 1, 2, 3)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte("model:\n  preprocess:\n    preset: torchvision\n    resize: squash\n"), 0o600))
	fixed := constant(t, 0, []int64{1, 2}, map[string]string{"task": "classify", "names": "{0: 'a', 1: 'b'}"})
	for _, test := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"--model", network, "--labels", labels}, "nothing says how a classifier's images are cropped and scaled (give --preprocess, "},
		{[]string{"--preprocess", "torchvison"}, `model.preprocess: preprocess preset: "torchvison" is not known, did you mean torchvision?`},
		{[]string{"--preprocess", "{mean: fast}"}, "model.preprocess: preprocess line 1: "},
		{[]string{"--imgsz", "640x"}, `model.imgsz "640x" must be a side or HEIGHTxWIDTH, of 1 to 32768 pixels`},
		{[]string{"--activation", "tanh"}, `model.activation "tanh" must be auto, softmax or sigmoid`},
		{[]string{"--top", "0"}, `detect.top "0" must be 1 to 1000`},
		{[]string{"--config", file}, `preprocess resize: "squash" is not one of letterbox, `},
		{[]string{"--model", fixed, "--imgsz", "32x64"}, "takes images of 64x64 only, not 32x64 (omit --imgsz)"},
	} {
		command := programtest.Command(t, append([]string{"infer", img, "--engine", "onnxruntime"}, test.arguments...)...)
		output, err := command.CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(output), test.want)
		assert.Equal(t, 1, strings.Count(string(output), "edge-infer: "), "%s", output)
	}
}
