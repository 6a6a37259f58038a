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
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
)

// A run that is stopped while it calibrates or judges leaves nothing behind.
func TestQuantizeStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	pictures, dir := programtest.Scenes(t, 2, 7), t.TempDir()
	for matchRate, want := range map[float64]string{0: "calibrate: context canceled", 1: "gate reference: context canceled"} {
		q := &Quantize{
			Images: pictures, To: "int8", Method: "minmax", Count: 1, Cache: filepath.Join(dir, "ranges.json"),
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

// Ranges are measured on pictures as service makes inputs of them, which a file beside the model may say, and what is written says it
// itself. Ranges of another way are not taken for those of this one.
func TestQuantizeFollowsThePreprocess(t *testing.T) {
	t.Parallel()
	pictures, dir := programtest.Scenes(t, 2, 7), t.TempDir()
	model := filepath.Join(dir, "parts.onnx")
	require.NoError(t, os.WriteFile(model, demo.Model(), 0o600))
	q := &Quantize{
		Model: model, Images: pictures, To: "int8", Method: "minmax", Count: 2,
		Cache: filepath.Join(dir, "ranges.json"), Output: filepath.Join(dir, "out.onnx"),
	}
	for _, test := range []struct {
		beside, preset string
		darkest, most  float32
	}{{"", "ultralytics", 0, 1}, {"{preset: yolox}", "yolox", 0, 255}, {"{preset: keras, resize: letterbox}", "keras", -1, 1}} {
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

// Labels from a file are kept in what is made, which is read without the file.
func TestQuantizeKeepsTheLabels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	labels := filepath.Join(dir, "labels.txt")
	require.NoError(t, os.WriteFile(labels, []byte("one\ntwo\nit's three\nfour\nfive\nsix\n"), 0o600))
	q := &Quantize{Labels: labels, To: "fp16", Method: "mse", Output: filepath.Join(dir, "out.onnx")}
	_, err := q.Run(t.Context())
	require.NoError(t, err)
	made, err := onnx.Read(q.Output)
	require.NoError(t, err)
	metadata, err := engine.ParseMetadata(made.Metadata())
	require.NoError(t, err)
	assert.Equal(t, []string{"one", "two", "it's three", "four", "five", "six"}, metadata.Labels)
}
