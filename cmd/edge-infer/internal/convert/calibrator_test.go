package convert

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/preprocess"
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

// The calibration batches for TensorRT equal the network inputs of inference byte for byte, for every preprocessing and shape.
func TestCalibrationBatches(t *testing.T) {
	t.Parallel()
	images := filepath.Join(programtest.Scenes(t, 5, 7), "images")
	files, err := quantize.ChooseImages(images, 0, 0)
	require.NoError(t, err)
	for _, test := range []struct {
		name          string
		model         []byte
		preprocess    engine.Preprocess
		width, height int
		way           string
	}{
		{"metadata", demo.Model(), engine.Preprocess{}, 0, 0, "letterbox, bilinear, pad 114, rgb, 0..1, nchw"},
		{"option", demo.Model(), engine.Preprocess{Preset: "yolox"}, 0, 0, "letterbox-top-left, bilinear, pad 114, bgr, 0..255, nchw"},
		{
			"in the shape of the plan", enginetest.Network(t, "image_free").Bytes,
			engine.Preprocess{Preset: "rtdetr"},
			160, 96,
			"stretch, bilinear-antialias, pad 114, rgb, 0..1, nchw",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			model, err := onnx.Parse("model.onnx", test.model)
			require.NoError(t, err)
			metadata, err := engine.ParseMetadata(model.Metadata())
			require.NoError(t, err)
			metadata.Preprocess = metadata.Preprocess.Override(test.preprocess)
			c := &calibrator{files: files, method: TensorRTMinMax, dir: t.TempDir()}
			o := tensorrt.BuildOptions{
				Metadata: metadata, Batch: tensorrt.Range{Min: 1, Opt: 2, Max: 4}, Width: test.width, Height: test.height,
			}
			require.NoError(t, c.prepare(t.Context(), model, &o, tensorrt.Version{Number: 8503, Major: 8}))
			assert.True(t, o.Calibration.MinMax)
			assert.Len(t, o.Calibration.Hash, 64)
			got, err := os.ReadFile(o.Calibration.Batches)
			require.NoError(t, err)

			e, err := onnxruntime.Open(engine.Options{
				Path: "model.onnx", Bytes: test.model, Metadata: engine.Metadata{Preprocess: test.preprocess}, Width: test.width, Height: test.height,
			})
			require.NoError(t, err)
			input := e.Model().Image
			require.NoError(t, e.Close())
			require.Equal(t, test.way, input.Preprocess.String())
			want := []byte("EICALIB1\x01\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x06\x00\x00\x00images")
			batch := uint64(2 * input.ImageBytes())
			for shift := range 8 {
				want = append(want, byte(batch>>(8*shift)))
			}
			var reader media.Reader
			defer reader.Close()
			for i := range 4 { // the fifth does not fill a batch
				img, err := reader.Read(files[i])
				require.NoError(t, err)
				one := make([]byte, input.ImageBytes())
				_, err = preprocess.NewLetterbox(input).Run(&img, one, preprocess.Geometry{})
				require.NoError(t, err)
				want = append(want, one...)
			}
			assert.True(t, bytes.Equal(want, got))
		})
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

	c := &calibrator{cache: path, method: string(quantize.MinMax), dir: t.TempDir()}
	var o tensorrt.BuildOptions
	measure("images")
	require.EqualError(t, c.prepare(t.Context(), model, &o, tensorrt.Version{Number: 8503, Major: 8}),
		"calibration cache "+path+" has only the ranges that Q/DQ nodes need (give --images DIR to measure all)")
	cache := measure(quantize.AllTensors(prepared)...)
	require.NoError(t, c.prepare(t.Context(), model, &o, tensorrt.Version{Number: 8503, Major: 8}))
	assert.Empty(t, o.Calibration.Batches)
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
