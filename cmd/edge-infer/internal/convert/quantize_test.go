package convert

import (
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

// A run that is stopped while it calibrates or judges leaves nothing behind.
func TestQuantizeStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	images, dir := programtest.Scenes(t, 2, 7), t.TempDir()
	for matchRate, want := range map[float64]string{0: "calibrate: context canceled", 1: "gate reference: context canceled"} {
		q := &Quantize{
			Images: images, To: "int8", Method: "minmax", Count: 1, Cache: filepath.Join(dir, "ranges.json"),
			Output: filepath.Join(dir, "out.onnx"),
			Limits: accuracy.Limits{MatchRate: matchRate},
		}
		_, err := q.Run(ctx)
		require.EqualError(t, err, want)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// Ranges are measured on images as service makes inputs of them, which a file beside the model may say, and what is written says it
// itself. Ranges of another way are not taken for those of this one.
func TestQuantizeFollowsThePreprocess(t *testing.T) {
	t.Parallel()
	images, dir := programtest.Scenes(t, 2, 7), t.TempDir()
	model := filepath.Join(dir, "parts.onnx")
	require.NoError(t, os.WriteFile(model, demo.Model(), 0o600))
	q := &Quantize{
		Model: model, Images: images, To: "int8", Method: "minmax", Count: 2,
		Cache: filepath.Join(dir, "ranges.json"), Output: filepath.Join(dir, "out.onnx"),
	}
	for _, test := range []struct {
		beside, asked, preset string
		darkest, most         float32
	}{
		{"", "", "ultralytics", 0, 1},
		{"{preset: yolox}", "", "yolox", 0, 255},
		{"{preset: keras, resize: letterbox}", "", "keras", -1, 1},
		{"{preset: keras, resize: letterbox}", "yolox", "yolox", 0, 255},
	} {
		q.Preprocess = test.asked
		require.NoError(t, os.WriteFile(engine.PreprocessFile(model), []byte(test.beside), 0o600))
		report, err := q.Run(t.Context())
		require.NoError(t, err)
		assert.False(t, report.Calibration.Reused, test.beside)
		cache, err := quantize.ReadCache(q.Cache)
		require.NoError(t, err)
		seen := cache.Ranges["images"]
		assert.InDelta(t, test.darkest, seen.Min, .3*float64(test.most), test.beside) // the belt is nearly black somewhere, and not white
		assert.Greater(t, seen.Max, test.darkest+(test.most-test.darkest)/2, test.beside)
		assert.LessOrEqual(t, seen.Max, test.most, test.beside)
		made, err := onnx.Read(q.Output)
		require.NoError(t, err)
		metadata, err := engine.ParseMetadata(made.Metadata())
		require.NoError(t, err)
		assert.Equal(t, test.preset, metadata.Preprocess.Preset)
		again, err := q.Run(t.Context())
		require.NoError(t, err)
		assert.True(t, again.Calibration.Reused, test.beside)
	}
}

// Sides of a network that leaves them open are those that it is measured with, and what is written says them.
func TestQuantizeKeepsTheSides(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	model := filepath.Join(dir, "free.onnx")
	require.NoError(t, os.WriteFile(model, enginetest.Network(t, "image_free").Bytes, 0o600))
	q := &Quantize{
		Model: model, Meaning: Meaning{Size: "64x128"}, Images: programtest.Scenes(t, 2, 7), To: "fp16", Method: "minmax", Count: 2,
		Percentile: 99.9, Batch: 1, Output: filepath.Join(dir, "out.onnx"),
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
	require.EqualError(t, err, "model demo takes images of 416x416 alone, not 64x128 (remove --imgsz)")
	q.Limits.MaxLoss = .01
	for meaning, want := range map[Meaning]string{
		{Size: "64by128"}: `--imgsz`, {Preprocess: "yolo"}: `--preprocess: `,
	} {
		q.Meaning = meaning
		require.ErrorContains(t, q.Check(), want)
		b := &Build{Meaning: meaning, Precision: "fp32", Batch: "1", Method: q.Method}
		require.ErrorContains(t, b.Check(), want)
	}
}

// Labels from a file are kept in what is made, which is read without the file.
func TestQuantizeKeepsTheLabels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	labels := filepath.Join(dir, "labels.txt")
	require.NoError(t, os.WriteFile(labels, []byte("one\ntwo\nit's three\nfour\nfive\nsix\n"), 0o600))
	q := &Quantize{Meaning: Meaning{Labels: labels}, To: "fp16", Method: "mse", Output: filepath.Join(dir, "out.onnx")}
	_, err := q.Run(t.Context())
	require.NoError(t, err)
	made, err := onnx.Read(q.Output)
	require.NoError(t, err)
	metadata, err := engine.ParseMetadata(made.Metadata())
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "it's three", "four", "five", "six"}, metadata.Labels)
}
