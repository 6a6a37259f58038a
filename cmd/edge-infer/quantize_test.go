package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/convert"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
)

// quantizeTo runs the command with --json and returns its document.
func quantizeTo(t *testing.T, args ...string) (convert.QuantizeReport, string, error) {
	c := programtest.Command(t, append([]string{"quantize", "--json"}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	output, err := c.Output()
	var result convert.QuantizeReport
	if len(output) > 0 {
		require.NoError(t, json.Unmarshal(output, &result), string(output))
	}
	return result, stderr.String(), err
}

func readVerdict(t *testing.T, path string) quantize.Verdict {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var v quantize.Verdict
	require.NoError(t, json.Unmarshal(data, &v))
	return v
}

// TestQuantizeForTheCPU: on a machine without TensorRT the model is one that ONNX Runtime computes in integers, and its speed is reported.
func TestQuantizeForTheCPU(t *testing.T) {
	t.Parallel()
	calibration, heldOut, dir := programtest.Scenes(t, 4, 7), programtest.Scenes(t, 5, 99), t.TempDir()
	out := filepath.Join(dir, "int8.onnx")
	arguments := []string{"--images", calibration, "--data", heldOut, "--gate", "0.9", "--max-loss", "0.2", "-o", out}
	found, text, err := quantizeTo(t, arguments...)
	require.NoError(t, err, text)
	assert.Equal(t, quantize.ONNXRuntime, found.Target)
	assert.True(t, found.Verdict.Passed)
	assert.Less(t, found.OutputBytes, found.ModelBytes/2)
	require.NotNil(t, found.Speed)
	assert.Positive(t, found.Speed.FP32)
	assert.Positive(t, found.Speed.INT8)
	text = string(programtest.Output(t, append([]string{"quantize"}, arguments...)...))
	assert.Regexp(t, `(?m)^demo in INT8 for onnxruntime by mse: \d+ of 33 layers`, text)
	assert.Regexp(t, `(?m)^[\d.]+ ms per image in INT8, [\d.]+ ms in FP32: [\d.]+ times as fast on this CPU`, text)
	output := programtest.Output(t, "infer", "--model", out, filepath.Join(heldOut, "images"))
	assert.Len(t, strings.Split(strings.TrimSpace(string(output)), "\n"), 5)
}

// TestQuantizeInt8 uses the files of its earlier steps.
func TestQuantizeInt8(t *testing.T) {
	programtest.Long(t)
	t.Parallel()
	calibration, heldOut, dir := programtest.Scenes(t, 4, 7), programtest.Scenes(t, 5, 99), t.TempDir()
	out, cache, report := filepath.Join(dir, "int8.onnx"), filepath.Join(dir, "ranges.json"), filepath.Join(dir, "report.json")
	arguments := []string{
		"--target", "tensorrt", "--images", calibration, "--data", heldOut, "--gate", "0.9", "--max-loss", "0.2", "--int8-weights",
		"--calibration-cache", cache, "--report", report, "-o", out,
	}
	first, text, err := quantizeTo(t, arguments...)
	require.NoError(t, err, text)
	assert.Equal(t, "demo", first.Model)
	assert.Equal(t, out, first.Output)
	assert.Equal(t, quantize.MSE, first.Method)
	assert.Equal(t, 4, first.Calibration.Images)
	assert.False(t, first.Calibration.Reused)
	assert.Less(t, first.OutputBytes, first.ModelBytes/2)
	assert.True(t, first.Verdict.Passed)
	assert.Equal(t, 5, first.Verdict.Comparison.Images)
	assert.InDelta(t, first.Verdict.Comparison.ReferenceAccuracy.MAP50, first.Verdict.Comparison.CandidateAccuracy.MAP50, 0.05)
	assert.Equal(t, *first.Verdict, readVerdict(t, out+accuracy.VerdictSuffix))

	model, err := onnx.Read(out)
	require.NoError(t, err)
	assert.Positive(t, model.Operators()["DequantizeLinear"])
	written, err := os.ReadFile(report)
	require.NoError(t, err)
	var reported convert.QuantizeReport
	require.NoError(t, json.Unmarshal(written, &reported))
	assert.Equal(t, first, reported)

	before, err := os.ReadFile(out)
	require.NoError(t, err)
	second, text, err := quantizeTo(t, arguments...)
	require.NoError(t, err, text)
	assert.True(t, second.Calibration.Reused)
	after, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(before, after), "the same ranges give the same file")

	// The ranges as a calibration cache of TensorRT, which quantize does not read itself, and does not overwrite.
	table := filepath.Join(dir, "ranges.table")
	_, text, err = quantizeTo(t, append(arguments, "--calibration-table", table)...)
	require.NoError(t, err, text)
	lines, err := os.ReadFile(table)
	require.NoError(t, err)
	assert.Regexp(t, `^TRT-8601-MinMaxCalibration\n(\S+: [0-9a-f]{8}\n)+$`, string(lines))
	_, text, err = quantizeTo(t, append(arguments, "--calibration-cache", table)...)
	require.Error(t, err)
	assert.Contains(t, text, "calibration cache: that of TensorRT cannot be used for Q/DQ nodes (name another file to calibrate)")
	kept, err := os.ReadFile(table)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(lines, kept))

	other, text, err := quantizeTo(t, append(arguments, "--method", "percentile", "--percentile", "99.9")...)
	require.NoError(t, err, text)
	assert.False(t, other.Calibration.Reused, "another percentile needs other ranges")

	output := programtest.Output(t, "infer", "--model", out, filepath.Join(heldOut, "images"))
	assert.Len(t, strings.Split(strings.TrimSpace(string(output)), "\n"), 5)

	// A file without the gate has no verdict, not that of an earlier one.
	_, text, err = quantizeTo(t, "--images", calibration, "--gate", "0", "--calibration-cache", cache, "-o", out)
	require.NoError(t, err, text)
	assert.NoFileExists(t, out+accuracy.VerdictSuffix)

	// Ranges that were measured before need no images, where nothing is to be judged.
	none := filepath.Join(dir, "none.json")
	_, text, err = quantizeTo(t, "--gate", "0", "--layer-loss", "0", "--calibration-cache", none, "-o", out)
	require.Error(t, err)
	assert.Contains(t, text, none+": no such file (give --images DIR to write it)")
	unjudged, text, err := quantizeTo(t, "--gate", "0", "--layer-loss", "0", "--calibration-cache", cache, "-o", out)
	require.NoError(t, err, text)
	assert.True(t, unjudged.Calibration.Reused)
	assert.Equal(t, 4, unjudged.Calibration.Images)
	_, text, err = quantizeTo(t, "--gate", "0", "--layer-loss", "0", "--calibration-cache", cache, "-o", out,
		"--method", "percentile", "--percentile", "99.9")
	require.Error(t, err)
	assert.Contains(t, text, "another percentile (give --images DIR to measure again)")
}

func TestQuantizeHalf(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "half.onnx")
	output := programtest.Output(t, "quantize", "--precision", "fp16", "--images", programtest.Scenes(t, 6, 7), "--count", "1", "-o",
		out)
	assert.Regexp(t, `^FP16 passed\nmatch rate [01]\.\d{4}: boxes of FP32 that FP16 has too, of \d+ in 5 images\n`, string(output), "first")
	assert.Contains(t, string(output), "\n\ndemo in FP16: ")
	assert.True(t, readVerdict(t, out+accuracy.VerdictSuffix).Passed)
	assert.InDelta(t, 0.5, float64(size(t, out))/float64(1842526), 0.1)
}

func size(t *testing.T, path string) int64 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// Ranges measured on a black image are useless: the gate refuses the model, and no file remains.
func TestQuantizeRefuses(t *testing.T) {
	t.Parallel()
	black, dir := t.TempDir(), t.TempDir()
	programtest.WriteImage(t, filepath.Join(black, "black.png"), color.Black)
	out, report := filepath.Join(dir, "bad.onnx"), filepath.Join(dir, "report.json")
	result, text, err := quantizeTo(t, "--images", black, "--data", programtest.Scenes(t, 6, 99), "--report", report, "-o", out)
	require.Error(t, err)
	assert.Regexp(t, `(?m)^edge-infer: \S+bad.onnx was not written, the gate refused the INT8 model: mAP50-95 fell by .*`+
		`\(calibrate on more images like the camera's, try --search, another --method, or --precision fp16\)\n$`, text)
	assert.False(t, result.Verdict.Passed)
	assert.Empty(t, result.Output)
	assert.FileExists(t, report)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing but the report")
}

// A search excludes layers until the gate passes and reports them.
func TestQuantizeSearches(t *testing.T) {
	programtest.Long(t)
	t.Parallel()
	black, out := t.TempDir(), filepath.Join(t.TempDir(), "searched.onnx")
	programtest.WriteImage(t, filepath.Join(black, "black.png"), color.Black)
	result, text, err := quantizeTo(t, "--target", "tensorrt", "--images", black, "--data", programtest.Scenes(t, 5, 99), "--search",
		"--exclude", "/p3/*/*/Conv", "-o", out)
	require.NotNil(t, result.Verdict, text)
	assert.Equal(t, err == nil, result.Verdict.Passed, text)
	assert.Greater(t, result.ModelsJudged, 1)
	assert.True(t, slices.IsSortedFunc(result.Sensitivity, func(a, b quantize.LayerError) int { return cmp.Compare(b.Error, a.Error) }))
	assert.Len(t, result.Sensitivity, 25, "27 layers without the two of the command line")
	excluded := 0
	for _, layer := range result.Layers {
		if strings.HasPrefix(layer.Name, "/p3/") {
			assert.NotEmpty(t, layer.Reason, layer.Name)
		}
	}
	for _, layer := range result.Sensitivity {
		if layer.Excluded {
			excluded++
		}
	}
	assert.Equal(t, err == nil, excluded > 0)
}

// A model with external tensors is read completely, and the converted model needs no other file.
func TestQuantizeReadsExternalData(t *testing.T) {
	t.Parallel()
	source, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	dir := t.TempDir()
	for _, tensor := range source.Proto.Graph.Initializer {
		if len(tensor.RawData) < 1000 {
			continue
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "weights.bin"), tensor.RawData, 0o600))
		tensor.RawData, tensor.DataLocation = nil, onnx.TensorProto_EXTERNAL.Enum()
		tensor.ExternalData = []*onnx.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("weights.bin")}}
		break
	}
	require.Equal(t, []string{"weights.bin"}, source.ExternalFiles())
	path, out := filepath.Join(dir, "split.onnx"), filepath.Join(t.TempDir(), "half.onnx")
	require.NoError(t, source.Save(path))
	result, text, err := quantizeTo(t, path, "--precision", "fp16", "--gate", "0", "-o", out)
	require.NoError(t, err, text)
	assert.Equal(t, path, result.Model)
	assert.Nil(t, result.Verdict)
	made, err := onnx.Read(out)
	require.NoError(t, err)
	assert.Empty(t, made.ExternalFiles())

	require.NoError(t, os.Remove(filepath.Join(dir, "weights.bin")))
	_, text, err = quantizeTo(t, path, "--precision", "fp16", "--gate", "0", "-o", out)
	require.Error(t, err)
	assert.Contains(t, text, "weights.bin")
	assert.Equal(t, 1, strings.Count(text, "\n"), text)
}
