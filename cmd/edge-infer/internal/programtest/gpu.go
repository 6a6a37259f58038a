package programtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	cudafake "github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// FakeDriver is a driver with a GPU that exists in memory only.
func FakeDriver(t testing.TB) string {
	return filepath.Join(Shared(t, "cuda", func(dir string) error {
		_, err := cudafake.Build(dir, 0)
		return err
	}), "libcuda.so.1")
}

// FakeTensorRT is a library for that GPU.
func FakeTensorRT(t testing.TB, version int) string {
	dir := Shared(t, fmt.Sprint("tensorrt-", version), func(dir string) error {
		_, err := fake.Build(dir, fake.Options{Version: version, Tables: Project("engine/tensorrt")})
		return err
	})
	found, err := filepath.Glob(filepath.Join(dir, "libnvinfer.so.*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// FakeMachine gives the environment of programs that find that GPU and a TensorRT of that version, and a model that both ONNX Runtime and
// that TensorRT take: the demo model with a description for the fake, which sees other boxes in every image.
func FakeMachine(t testing.TB, version int) (environment []string, model string) {
	source, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	plan, err := quantize.NewPlan(source, quantize.Options{})
	require.NoError(t, err)
	description := fake.Model{
		Network: "head", Operators: append(append([]string{"backbone"}, plan.Unquantized()...), "softmax", "decode"),
		Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{-1, 3, 416, 416}}},
		Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{-1, 10, 3549}}},
	}
	model = filepath.Join(t.TempDir(), "belt.onnx")
	require.NoError(t, os.WriteFile(model, append(demo.Model(), description.Bytes()...), 0o600)) // fields of protobuf messages add up
	return []string{cuda.LibraryEnvironment + "=" + FakeDriver(t), tensorrt.LibraryEnvironment + "=" + FakeTensorRT(t, version)}, model
}

// StandInGPU makes a driver and a TensorRT that run on any machine, and a model that they and ONNX Runtime take: the demo model, which says
// to the stand-ins in its last field what they are to build instead. It gives the environment of a program that finds them.
func StandInGPU(t testing.TB) (environment []string, model string) {
	const kernels = "kernels.so"
	dir := Shared(t, "kernels", func(dir string) error {
		_, err := cudafake.Compile(filepath.Join(dir, kernels), "-x", "c++", "-std=c++17", Project("engine/preprocess/kernels.cu"),
			"-lstdc++", "-lm")
		return err
	})
	file := append([]byte(nil), demo.Model()...)
	file = append(file, fake.Model{
		Network: "head",
		Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 416, 416}}},
		Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{1, 10, 3549}}},
	}.Bytes()...)
	model = filepath.Join(t.TempDir(), "parts.onnx")
	require.NoError(t, os.WriteFile(model, file, 0o600))
	return []string{
		"EDGE_INFER_LIBCUDA=" + FakeDriver(t), "EDGE_INFER_TENSORRT=" + filepath.Dir(FakeTensorRT(t, 100300)),
		"FAKE_CUDA_KERNELS=" + filepath.Join(dir, kernels), "FAKE_CUDA=capability=87",
	}, model
}
