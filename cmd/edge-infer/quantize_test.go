package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
)

// scenes draws labelled pictures of the demo's belt, which tests share.
func scenes(t *testing.T, count, seed string) string {
	return shared(t, "scenes-"+count+"-"+seed, func(folder string) error {
		output, err := command(t, "dataset", "--out", folder, "--count", count, "--seed", seed, "--width", "640", "--height", "360").CombinedOutput()
		if err != nil {
			return fmt.Errorf("dataset: %w: %s", err, output)
		}
		return nil
	})
}

// quantizeTo runs the command with --json and gives its document.
func quantizeTo(t *testing.T, args ...string) (quantized, string, error) {
	c := command(t, append([]string{"quantize", "--json"}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	output, err := c.Output()
	var result quantized
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

func TestQuantizeInt8(t *testing.T) {
	t.Parallel()
	calibration, heldOut, dir := scenes(t, "4", "7"), scenes(t, "5", "99"), t.TempDir()
	out, cache, report := filepath.Join(dir, "int8.onnx"), filepath.Join(dir, "ranges.json"), filepath.Join(dir, "report.json")
	arguments := []string{
		"--images", calibration, "--data", heldOut, "--gate", "0.9", "--max-loss", "0.2", "--compact", "--calibration-cache", cache, "--report", report, "-o", out,
	}
	first, text, err := quantizeTo(t, arguments...)
	require.NoError(t, err, text)
	assert.Equal(t, "demo", first.Model)
	assert.Equal(t, out, first.Output)
	assert.Equal(t, quantize.MSE, first.Method)
	assert.Equal(t, 4, first.Calibration.Pictures)
	assert.False(t, first.Calibration.Reused)
	assert.Less(t, first.OutputBytes, first.ModelBytes/2)
	assert.True(t, first.Verdict.Passed)
	assert.Equal(t, 5, first.Verdict.Comparison.Pictures)
	assert.InDelta(t, first.Verdict.Comparison.ReferenceAccuracy.MAP50, first.Verdict.Comparison.CandidateAccuracy.MAP50, 0.05)
	assert.Equal(t, *first.Verdict, readVerdict(t, out+verdictSuffix))

	model, err := onnx.Read(out)
	require.NoError(t, err)
	assert.Positive(t, model.Operators()["DequantizeLinear"])
	written, err := os.ReadFile(report)
	require.NoError(t, err)
	var reported quantized
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

	// TensorRT's table of the same ranges gives the same model; one that lacks tensors is not overwritten.
	table := filepath.Join(dir, "ranges.table")
	_, text, err = quantizeTo(t, append(arguments, "--calibration-table", table)...)
	require.NoError(t, err, text)
	lines, err := os.ReadFile(table)
	require.NoError(t, err)
	assert.Regexp(t, `^TRT-8601-MinMaxCalibration\n(\S+: [0-9a-f]{8}\n)+$`, string(lines))
	imported, text, err := quantizeTo(t, append(arguments, "--calibration-cache", table, "--method", "minmax")...)
	require.NoError(t, err, text)
	assert.True(t, imported.Calibration.Reused)
	again, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, len(after), len(again), "the same model but for the last bits of scales")
	require.NoError(t, os.WriteFile(table, bytes.Replace(lines, []byte("\nimages: "), []byte("\nothers: "), 1), 0o600))
	_, text, err = quantizeTo(t, append(arguments, "--calibration-cache", table, "--method", "minmax")...)
	require.Error(t, err)
	assert.Contains(t, text, "a table of TensorRT, lacks tensors of this model (name another file to calibrate again)")

	other, text, err := quantizeTo(t, append(arguments, "--method", "percentile", "--percentile", "99.9")...)
	require.NoError(t, err, text)
	assert.False(t, other.Calibration.Reused, "another percentile needs other ranges")

	output, err := command(t, "infer", "--model", out, filepath.Join(heldOut, "images")).Output()
	require.NoError(t, err)
	assert.Len(t, strings.Split(strings.TrimSpace(string(output)), "\n"), 5)

	// A file without the gate has no verdict, not that of an earlier one.
	_, text, err = quantizeTo(t, "--images", calibration, "--gate", "0", "--calibration-cache", cache, "-o", out)
	require.NoError(t, err, text)
	assert.NoFileExists(t, out+verdictSuffix)
}

func TestQuantizeHalf(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "half.onnx")
	output, err := command(t, "quantize", "--to", "fp16", "--images", scenes(t, "6", "7"), "--count", "1", "-o", out).Output()
	require.NoError(t, err)
	assert.Contains(t, string(output), "demo in FP16: ")
	assert.Contains(t, string(output), "gate passed; match rate ")
	assert.Contains(t, string(output), " in 5 pictures")
	assert.True(t, readVerdict(t, out+verdictSuffix).Passed)
	assert.InDelta(t, 0.5, float64(size(t, out))/float64(1842526), 0.1)
}

func size(t *testing.T, path string) int64 {
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

// Ranges measured on a black picture fit nothing: the gate refuses, and no model is left behind.
func TestQuantizeRefuses(t *testing.T) {
	t.Parallel()
	black, dir := t.TempDir(), t.TempDir()
	writePicture(t, filepath.Join(black, "black.png"), color.Black)
	out, report := filepath.Join(dir, "bad.onnx"), filepath.Join(dir, "report.json")
	result, text, err := quantizeTo(t, "--images", black, "--data", scenes(t, "6", "99"), "--report", report, "-o", out)
	require.Error(t, err)
	assert.Regexp(t, `^edge-infer: \S+bad.onnx was not written, the gate refused the INT8 model: match rate \S+ is under 0.9800, mAP50-95 fell by .*`+
		`\(calibrate on more pictures like the camera's, try --search, another --method, or --to fp16\)\n$`, text)
	assert.False(t, result.Verdict.Passed)
	assert.Empty(t, result.Output)
	assert.FileExists(t, report)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing but the report")
}

func writePicture(t *testing.T, path string, pixel color.Color) {
	picture := image.NewRGBA(image.Rect(0, 0, 64, 48))
	for y := range 48 {
		for x := range 64 {
			picture.Set(x, y, pixel)
		}
	}
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, png.Encode(file, picture))
	require.NoError(t, file.Close())
}

// The search gives up layers until the gate passes, and says which.
func TestQuantizeSearches(t *testing.T) {
	t.Parallel()
	black, out := t.TempDir(), filepath.Join(t.TempDir(), "searched.onnx")
	writePicture(t, filepath.Join(black, "black.png"), color.Black)
	result, text, err := quantizeTo(t, "--images", black, "--data", scenes(t, "5", "99"), "--search", "--exclude", "/p3/*/*/Conv", "-o", out)
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

// A run that is stopped while it calibrates or judges leaves nothing behind.
func TestQuantizeStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pictures, dir := scenes(t, "2", "7"), t.TempDir()
	for matchRate, want := range map[float64]string{0: "calibrate: context canceled", 1: "gate reference: context canceled"} {
		q := &quantization{
			images: pictures, to: "int8", method: "minmax", count: 1, cache: filepath.Join(dir, "ranges.json"), output: filepath.Join(dir, "out.onnx"),
			gate: gateLimits{matchRate: matchRate}, stderr: io.Discard,
		}
		_, err := q.run(ctx)
		require.EqualError(t, err, want)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

func TestGateTextNamesTheAccuracy(t *testing.T) {
	v := &quantize.Verdict{Passed: true, Comparison: quantize.Comparison{
		Pictures: 2, Reference: 30, MatchRate: 0.99, ReferenceAccuracy: &quantize.Accuracy{MAP50: 0.9, MAP: 0.8}, CandidateAccuracy: &quantize.Accuracy{MAP50: 0.8, MAP: 0.7},
	}}
	assert.Equal(t, "passed; match rate 0.9900 of 30 boxes in 2 pictures, 0 flipped class, score drift mean 0.0000 max 0.0000; "+
		"mAP50 0.8000 of 0.9000, mAP50-95 0.7000 of 0.8000", verdictText(v))
	v.Passed, v.Reasons = false, []string{"this", "that"}
	assert.True(t, strings.HasPrefix(verdictText(v), "refused: this, that; match rate"))
}

// A model that keeps tensors in another file is read as a whole, and what is written stands alone.
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
	result, text, err := quantizeTo(t, path, "--to", "fp16", "--gate", "0", "-o", out)
	require.NoError(t, err, text)
	assert.Equal(t, path, result.Model)
	assert.Nil(t, result.Verdict)
	made, err := onnx.Read(out)
	require.NoError(t, err)
	assert.Empty(t, made.ExternalFiles())

	require.NoError(t, os.Remove(filepath.Join(dir, "weights.bin")))
	_, text, err = quantizeTo(t, path, "--to", "fp16", "--gate", "0", "-o", out)
	require.Error(t, err)
	assert.Contains(t, text, "weights.bin")
	assert.Equal(t, 1, strings.Count(text, "\n"), text)
}
