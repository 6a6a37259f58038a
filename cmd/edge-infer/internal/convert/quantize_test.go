package convert

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
)

// A run that is cancelled during calibration or in the gate leaves no files.
func TestQuantizeStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	images, dir := programtest.Scenes(t, 2, 7), t.TempDir()
	for matchRate, want := range map[float64]string{0: "calibrate: context canceled", 1: "gate: held-out images in FP32: context canceled"} {
		q := &Quantize{
			Precision: "int8", Output: filepath.Join(dir, "out.onnx"), INT8Options: INT8Options{
				Images: images, Method: "minmax", Count: 1, Cache: filepath.Join(dir, "ranges.json"),
				Limits: accuracy.Limits{MatchRate: matchRate},
			},
		}
		_, err := q.Run(ctx)
		require.EqualError(t, err, want)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// Ranges are measured with the preprocessing of inference, which a file next to the model may define, and the converted model contains it.
// Ranges measured with another preprocessing are not reused.
func TestQuantizeUsesThePreprocessing(t *testing.T) {
	t.Parallel()
	images, dir := programtest.Scenes(t, 2, 7), t.TempDir()
	model := filepath.Join(dir, "parts.onnx")
	require.NoError(t, os.WriteFile(model, demo.Model(), 0o600))
	q := &Quantize{
		Model: model, Precision: "int8", Output: filepath.Join(dir, "out.onnx"), INT8Options: INT8Options{
			Images: images, Method: "minmax", Count: 2, Cache: filepath.Join(dir, "ranges.json"),
		},
	}
	for _, test := range []struct {
		file, option, preset string
		darkest, most        float32
	}{
		{"", "", "ultralytics", 0, 1},
		{"{preset: yolox}", "", "yolox", 0, 255},
		{"{preset: keras, resize: letterbox}", "", "keras", -1, 1},
		{"{preset: keras, resize: letterbox}", "yolox", "yolox", 0, 255},
	} {
		q.Preprocess = test.option
		require.NoError(t, os.WriteFile(engine.PreprocessFile(model), []byte(test.file), 0o600))
		report, err := q.Run(t.Context())
		require.NoError(t, err)
		assert.False(t, report.Calibration.Reused, test.file)
		cache, err := quantize.ReadCache(q.Cache)
		require.NoError(t, err)
		seen := cache.Ranges["images"]
		assert.InDelta(t, test.darkest, seen.Min, .3*float64(test.most), test.file) // the belt is nearly black somewhere, and not white
		assert.Greater(t, seen.Max, test.darkest+(test.most-test.darkest)/2, test.file)
		assert.LessOrEqual(t, seen.Max, test.most, test.file)
		made, err := onnx.Read(q.Output)
		require.NoError(t, err)
		metadata, err := engine.ParseMetadata(made.Metadata())
		require.NoError(t, err)
		assert.Equal(t, test.preset, metadata.Preprocess.Preset)
		again, err := q.Run(t.Context())
		require.NoError(t, err)
		assert.True(t, again.Calibration.Reused, test.file)
	}
}

// A model with dynamic height and width is converted for the given size, and the converted model contains it.
func TestQuantizeKeepsTheInputSize(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(dir, "free.onnx")
	require.NoError(t, os.WriteFile(model, enginetest.Network(t, "image_free").Bytes, 0o600))
	q := &Quantize{
		Model: model, ModelOptions: ModelOptions{Size: "64x128"}, Precision: "fp16", Output: filepath.Join(dir, "out.onnx"),
		INT8Options: INT8Options{Images: programtest.Scenes(t, 2, 7), Method: "minmax", Count: 2, Percentile: 99.9},
	}
	_, err := q.Run(t.Context())
	require.NoError(t, err)
	written, err := os.ReadFile(q.Output)
	require.NoError(t, err)
	e, err := accuracy.OnCPU(q.Output, written, 1)
	require.NoError(t, err)
	defer e.Close()
	assert.Equal(t, []int{64, 128}, []int{e.Model().Height, e.Model().Width})
	q.Model = ""
	_, err = q.Run(t.Context())
	require.EqualError(t, err, "model demo takes images of 416x416 only, not 64x128 (omit --imgsz)")
	q.Limits.MaxLoss = .01
	for meaning, want := range map[ModelOptions]string{
		{Size: "64by128"}: `--imgsz`, {Preprocess: "yolo"}: `--preprocess: `,
	} {
		q.ModelOptions = meaning
		require.ErrorContains(t, q.Check(), want)
		b := &Build{ModelOptions: meaning, Precision: "fp32", Batch: "1", INT8Options: INT8Options{Method: q.Method, Percentile: 99.9}}
		require.ErrorContains(t, b.Check(), want)
	}
}

// Labels of a file are written into the converted model.
func TestQuantizeKeepsTheLabels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	labels := filepath.Join(dir, "labels.txt")
	require.NoError(t, os.WriteFile(labels, []byte("one\ntwo\nit's three\nfour\nfive\nsix\n"), 0o600))
	q := &Quantize{ModelOptions: ModelOptions{Labels: labels}, Precision: "fp16", Output: filepath.Join(dir, "out.onnx")}
	_, err := q.Run(t.Context())
	require.NoError(t, err)
	made, err := onnx.Read(q.Output)
	require.NoError(t, err)
	metadata, err := engine.ParseMetadata(made.Metadata())
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "it's three", "four", "five", "six"}, metadata.Labels)
}

// The verdict and the figures that it rests on come first, what was done to which layer last.
func TestTheVerdictOfAQuantizationComesFirst(t *testing.T) {
	report := QuantizeReport{
		Model: "a.onnx", Output: "b.onnx", Precision: engine.INT8, Target: "tensorrt", Method: "mse",
		ModelBytes: 12_300_000, OutputBytes: 3_400_000,
		Calibration: &Calibration{Images: 300}, Layers: make([]quantize.Layer, 2), Seconds: 4.25,
		Sensitivity: []quantize.LayerError{{Name: "/head/conv", Operator: "Conv", Error: 0.032112, Excluded: true}, {Name: "/other"}},
		Verdict: &quantize.Verdict{Passed: true, Comparison: quantize.Comparison{
			Images: 50, Reference: 276, MatchRate: 0.9963, MeanDrift: 0.01, MaxDrift: 0.2, Flipped: 1,
			ReferenceAccuracy: &quantize.Accuracy{MAP50: 0.5779, MAP: 0.4}, CandidateAccuracy: &quantize.Accuracy{MAP50: 0.5766, MAP: 0.4012},
		}},
	}
	printed := func() string {
		var out bytes.Buffer
		require.NoError(t, report.Print(&out))
		return out.String()
	}
	require.Equal(t, `INT8 passed
               FP32     INT8  difference
mAP50        0.5779   0.5766     -0.0013
mAP50-95     0.4000   0.4012     +0.0012
match rate 0.9963: boxes of FP32 that INT8 has too, of 276 in 50 images
wrote b.onnx, 3.4 MB (12.3 MB before)

a.onnx in INT8 for tensorrt by mse: 2 of 2 layers, 300 calibration images, 4.2 s
score drift mean 0.0100, max 0.2000; 1 boxes of another class
Conv /head/conv kept in FP32: INT8 changes the output by 3.2 % (squared error, as --layer-loss)
`, printed())
	report.Verdict.Passed, report.Verdict.Reasons, report.Output = false, []string{"mAP50-95 fell"}, ""
	require.Regexp(t, `^INT8 refused: mAP50-95 fell\n {15}FP32`, printed())
	require.NotContains(t, printed(), "wrote")
	report.Verdict = nil
	require.Regexp(t, `^INT8 not checked for accuracy\n\na.onnx in INT8`, printed())
}
