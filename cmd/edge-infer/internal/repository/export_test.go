package repository

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine/enginetest"
)

func export(t *testing.T, network string) *Export {
	path := filepath.Join(t.TempDir(), network+".onnx")
	require.NoError(t, os.WriteFile(path, enginetest.Network(t, network).Bytes, 0o600))
	c := config.Default()
	c.Model.Path, c.Engine.Backend = path, "onnxruntime"
	return &Export{
		Dir: t.TempDir(), Batch: 8, Instances: 2, Versions: 1, GPUs: []int{0, 1}, Config: c, Logger: slog.New(slog.DiscardHandler),
	}
}

func TestExportWritesVersionsAndOneConfiguration(t *testing.T) {
	e := export(t, "image")
	require.NoError(t, e.Check())
	first, err := e.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, &Result{
		Model: "image", Dir: filepath.Join(e.Dir, "image"), Version: 1, File: filepath.Join(e.Dir, "image/1/model.onnx"),
		Config: filepath.Join(e.Dir, "image/config.pbtxt"),
	}, first)
	text, err := os.ReadFile(first.Config)
	require.NoError(t, err)
	require.Equal(t, `name: "image"
platform: "onnxruntime_onnx"
max_batch_size: 8
default_model_filename: "model.onnx"
input { name: "images" data_type: TYPE_FP32 dims: [3, 64, 96] }
output { name: "output0" data_type: TYPE_FP32 dims: [3, 8, 12] label_filename: "labels.txt" }
dynamic_batching { preferred_batch_size: [4, 8] max_queue_delay_microseconds: 0 }
instance_group { count: 2 kind: KIND_GPU gpus: [0, 1] }
model_warmup { name: "zeros-1" batch_size: 1 inputs { key: "images" value { data_type: TYPE_FP32 dims: [3, 64, 96] zero_data: true } } }
model_warmup { name: "zeros-8" batch_size: 8 inputs { key: "images" value { data_type: TYPE_FP32 dims: [3, 64, 96] zero_data: true } } }
version_policy { latest { num_versions: 1 } }
parameters { key: "batch" value { string_value: "1" } }
parameters { key: "imgsz" value { string_value: "[64, 96]" } }
parameters { key: "names" value { string_value: "[\"bolt\",\"nut\",\"wood's screw\"]" } }
parameters { key: "preprocess" value { string_value: "preset: ultralytics\012" } }
parameters { key: "stride" value { string_value: "8" } }
parameters { key: "task" value { string_value: "detect" } }
`, string(text))
	labels, err := os.ReadFile(filepath.Join(first.Dir, "labels.txt"))
	require.NoError(t, err)
	require.Equal(t, "bolt\nnut\nwood's screw\n", string(labels))

	require.NoError(t, os.WriteFile(first.Config, append(text, "# edited\n"...), 0o600))
	second, err := e.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, second.Version)
	require.True(t, second.Kept)
	kept, err := os.ReadFile(first.Config)
	require.NoError(t, err)
	require.Contains(t, string(kept), "# edited")
	left, err := filepath.Glob(filepath.Join(first.Dir, ".*"))
	require.NoError(t, err)
	require.Empty(t, left)
	model, err := os.ReadFile(second.File)
	require.NoError(t, err)
	require.Equal(t, enginetest.Network(t, "image").Bytes, model)
}

// A model whose number of images is fixed has no batches in the server's sense: its dims are whole.
func TestAFixedBatchIsPartOfTheShape(t *testing.T) {
	e := export(t, "image_fixed")
	e.GPUs = nil
	r, err := e.Run(t.Context())
	require.NoError(t, err)
	text, err := os.ReadFile(r.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), "max_batch_size: 0\n")
	require.Contains(t, string(text), "dims: [2, 3, 64, 96]")
	require.NotContains(t, string(text), "dynamic_batching")
	require.Contains(t, string(text), "instance_group { count: 2 kind: KIND_AUTO }")
}

// Each way of sending images is an ensemble: what makes them into the network's input, and the network.
func TestExportWritesEnsembles(t *testing.T) {
	e := export(t, "image")
	e.Wire = []string{"uint8", "jpeg"}
	require.NoError(t, e.Check())
	r, err := e.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"image_uint8", "image_jpeg"}, r.Ensembles)
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(e.Dir, path))
		require.NoError(t, err)
		return string(text)
	}
	require.Equal(t, `name: "image_jpeg"
platform: "ensemble"
max_batch_size: 8
input { name: "images" data_type: TYPE_STRING dims: [1] }
output { name: "output0" data_type: TYPE_FP32 dims: [3, 8, 12] }
ensemble_scheduling {
  step { model_name: "image_jpeg_input" model_version: -1 input_map { key: "images" value: "images" } output_map { key: "numbers" value: "numbers" } }
  step { model_name: "image" model_version: -1 input_map { key: "images" value: "numbers" }
    output_map { key: "output0" value: "output0" }
  }
}
parameters { key: "batch" value { string_value: "1" } }
parameters { key: "imgsz" value { string_value: "[64, 96]" } }
parameters { key: "names" value { string_value: "[\"bolt\",\"nut\",\"wood's screw\"]" } }
parameters { key: "preprocess" value { string_value: "preset: ultralytics\012" } }
parameters { key: "stride" value { string_value: "8" } }
parameters { key: "task" value { string_value: "detect" } }
`, read("image_jpeg/config.pbtxt"))
	require.DirExists(t, filepath.Join(e.Dir, "image_jpeg/1"))
	require.Equal(t, string(preprocessor), read("image_jpeg_input/1/model.py"))
	require.Contains(t, read("image_uint8/config.pbtxt"), "input { name: \"images\" data_type: TYPE_UINT8 dims: [3, 64, 96] }\n")
	require.Contains(t, read("image_uint8_input/config.pbtxt"), `{\"wire\":\"uint8\",\"layout\":\"nchw\",\"colour\":\"rgb\",`+
		`\"width\":96,\"height\":64,\"scale\":[0.003921569,0.003921569,0.003921569],\"bias\":[0,0,0]}`)

	require.NoError(t, os.WriteFile(filepath.Join(e.Dir, "image_jpeg/config.pbtxt"), []byte("edited"), 0o600))
	_, err = e.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, "edited", read("image_jpeg/config.pbtxt"))
	e.Wire = []string{"fp32"}
	require.ErrorContains(t, e.Check(), `--wire "fp32" must be fp16, uint8 or jpeg`)
}

// A version may hold a plan for each kind of GPU; the ONNX file then only says what they take and give.
func TestPlansForSeveralKindsOfGPU(t *testing.T) {
	e := export(t, "image")
	file := filepath.Join(t.TempDir(), "orin.engine")
	require.NoError(t, os.WriteFile(file, []byte("no plan"), 0o600))
	e.Plans = map[string]string{"8.7": file, "8.9": file}
	require.NoError(t, e.Check())
	_, err := e.Run(t.Context())
	require.ErrorContains(t, err, "orin.engine is not an engine plan")
	plan := append([]byte("ftrt"), make([]byte, 64)...)
	require.NoError(t, os.WriteFile(file, plan, 0o600))
	r, err := e.Run(t.Context())
	require.NoError(t, err)
	text, err := os.ReadFile(r.Config)
	require.NoError(t, err)
	require.Contains(t, string(text), `platform: "tensorrt_plan"
max_batch_size: 8
cc_model_filenames { key: "8.7" value: "model-8.7.plan" }
cc_model_filenames { key: "8.9" value: "model-8.9.plan" }
input {`)
	for _, name := range []string{"model-8.7.plan", "model-8.9.plan"} {
		written, err := os.ReadFile(filepath.Join(r.Dir, "1", name))
		require.NoError(t, err)
		require.Equal(t, plan, written)
	}
	require.NoFileExists(t, filepath.Join(r.Dir, "1/model.onnx"))
	e.Plans = map[string]string{"orin": file}
	require.ErrorContains(t, e.Check(), `--plans "orin" must be a compute capability, like 8.7`)
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Export){
		"--repository names the directory":                       func(e *Export) { e.Dir = "" },
		`--name "a/b" must be letters`:                           func(e *Export) { e.Name = "a/b" },
		"--max-batch must be 1 to 1024, --instances and --versi": func(e *Export) { e.Batch = 0 },
		"--queue-delay must be 0 to 1s":                          func(e *Export) { e.Delay = -1 },
		"--preferred must be 1 to 8":                             func(e *Export) { e.Preferred = []int{9} },
	} {
		e := &Export{Dir: "f", Batch: 8, Instances: 1, Versions: 1}
		require.NoError(t, e.Check())
		change(e)
		require.ErrorContains(t, e.Check(), want)
	}
}
