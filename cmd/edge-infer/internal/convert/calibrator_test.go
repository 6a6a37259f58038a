package convert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// A calibration cache of another TensorRT version is used with a new header; the file itself is not changed.
func TestCalibrationTableOfAnotherVersion(t *testing.T) {
	for _, test := range []struct {
		head, want string
		minmax     bool
	}{
		{"TRT-8601-MinMaxCalibration\n", "TRT-100600-MinMaxCalibration\n", true},
		{"TRT-100300-EntropyCalibration2\n", "TRT-100600-EntropyCalibration2\n", false},
		{"TRT-8503-MinMaxCalibration\r\n", "TRT-100600-MinMaxCalibration\r\n", true},
	} {
		const lines = "images: 3c010a14\n"
		path := filepath.Join(t.TempDir(), "table")
		require.NoError(t, os.WriteFile(path, []byte(test.head+lines), 0o600))
		c := &calibrator{cache: path, dir: t.TempDir()}
		var o tensorrt.BuildOptions
		require.NoError(t, c.prepare(t.Context(), nil, &o, tensorrt.Version{Number: 100600, Major: 10}))
		given, err := os.ReadFile(o.Calibration.Cache)
		require.NoError(t, err)
		assert.Equal(t, test.want+lines, string(given))
		assert.Equal(t, test.minmax, o.Calibration.MinMax)
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, test.head+lines, string(kept))
	}
}

// Ranges measured by quantize are written as a TensorRT calibration cache.
func TestCalibrationTableFromQuantize(t *testing.T) {
	t.Parallel()
	model, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	prepared, err := quantize.Prepare(model)
	require.NoError(t, err)
	files, err := quantize.ChooseImages(programtest.Scenes(t, 2, 7), 0, 0)
	require.NoError(t, err)
	var reader media.Reader
	defer reader.Close()
	collector := quantize.Collector{
		Model: prepared, Samples: &quantize.Images{Files: files, Decode: reader.Read},
		Open: (&conversion{name: "demo.onnx"}).open(1),
	}
	path := filepath.Join(t.TempDir(), "ranges.json")
	measure := func(tensors ...string) *quantize.Cache {
		collector.Tensors = tensors
		cache, err := collector.Run(t.Context())
		require.NoError(t, err)
		require.NoError(t, cache.Save(path))
		return cache
	}

	c := &calibrator{cache: path, method: quantize.MinMax, dir: t.TempDir()}
	var o tensorrt.BuildOptions
	measure("images")
	require.EqualError(t, c.prepare(t.Context(), model, &o, tensorrt.Version{Number: 8503, Major: 8}),
		"calibration cache "+path+" has only the ranges that Q/DQ nodes need (give --images DIR to measure all)")
	cache := measure(quantize.AllTensors(prepared)...)
	require.NoError(t, c.prepare(t.Context(), model, &o, tensorrt.Version{Number: 8503, Major: 8}))
	text, err := os.ReadFile(o.Calibration.Cache)
	require.NoError(t, err)
	want, err := cache.FormatTensorRT(8503, quantize.MinMax)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(text))
	assert.Regexp(t, `^TRT-8503-MinMaxCalibration\n(\S+: [0-9a-f]{8}\n)+$`, string(text))
	assert.Contains(t, string(text), "\nimages: ")
	assert.Equal(t, 1+len(quantize.AllTensors(prepared)), strings.Count(string(text), "\n"), "TensorRT wants the range of every tensor")
}

// In a calibrated build, an excluded layer is separated from its activation; without excluded layers the model's bytes are unchanged.
func TestExcludedLayersAreSeparated(t *testing.T) {
	t.Parallel()
	model := testnet.YOLO{Size: 64}.V8()
	o := tensorrt.BuildOptions{Model: []byte("as in the file")}
	require.NoError(t, separate(model, &o))
	assert.Equal(t, "as in the file", string(o.Model))
	plan, err := quantize.NewPlan(model, quantize.Options{Exclude: []string{"/model.1/conv/Conv"}})
	require.NoError(t, err)
	o.Calibration.Unquantized = plan.Unquantized()
	require.NoError(t, separate(model, &o))
	built, err := onnx.Parse("built.onnx", o.Model)
	require.NoError(t, err)
	assert.Equal(t, model.Operators()["Reshape"]+2, built.Operators()["Reshape"])
}
