package programtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	cudafake "github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// FakeDriver returns the path of a fake libcuda with one GPU.
func FakeDriver(t testing.TB) string {
	return filepath.Join(Shared(t, "cuda", func(dir string) error {
		_, err := cudafake.Build(dir, 0)
		return err
	}), "libcuda.so.1")
}

// FakeTensorRT returns the path of a fake libnvinfer of this version.
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

// FakeMachine returns an environment with the fake GPU and a fake TensorRT of this version, and a model for both ONNX Runtime and the fake:
// the demo model with a description for the fake, which returns different boxes.
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
	require.NoError(t, os.WriteFile(model, append(demo.Model(), description.Bytes()...), 0o600)) // protobuf messages can be concatenated
	return []string{cuda.LibraryEnvironment + "=" + FakeDriver(t), tensorrt.LibraryEnvironment + "=" + FakeTensorRT(t, version)}, model
}

// StandInGPU returns an environment with a fake driver that executes the kernels on the CPU and a fake TensorRT, and a model for them and
// for ONNX Runtime.
func StandInGPU(t testing.TB) (environment []string, model string) {
	const kernels = "kernels.so"
	dir := Shared(t, "kernels", func(dir string) error {
		_, err := cudafake.Compile(filepath.Join(dir, kernels), "-x", "c++", "-std=c++17", Project("engine/preprocess/kernels.cu"),
			"-lstdc++", "-lm")
		return err
	})
	return []string{
		"EDGE_INFER_LIBCUDA=" + FakeDriver(t), "EDGE_INFER_TENSORRT=" + filepath.Dir(FakeTensorRT(t, 100300)),
		"FAKE_CUDA_KERNELS=" + filepath.Join(dir, kernels), "FAKE_CUDA=capability=87",
	}, StandInModel(t, "head")
}

// StandInNVDEC returns the path of a stand-in for NVDEC's library that decodes with FFmpeg, for the driver of StandInGPU.
func StandInNVDEC(t testing.TB) string {
	const name = "libnvcuvid.so.1"
	return filepath.Join(Shared(t, "nvdec", func(dir string) error {
		_, err := cudafake.Compile(filepath.Join(dir, name), append([]string{
			"-std=gnu11", "-fvisibility=hidden", Project("capture/nvdec/testdata/libnvcuvid.c"), FakeDriver(t),
		}, testtool.Flags(t, "--cflags", "--libs", "libavcodec", "libavutil")...)...)
		return err
	}), name)
}

// StandInModel returns a model for the machine of StandInGPU: the demo model for ONNX Runtime, and for the fake TensorRT one of its
// networks with that model's tensors. The network "held" returns no result while the file exists that FAKE_TRT_REQUEST_HELD names,
// and is not opened while that of FAKE_TRT_OPENING_HELD exists.
func StandInModel(t testing.TB, network string) string {
	file := append([]byte(nil), demo.Model()...)
	file = append(file, fake.Model{
		Network: network,
		Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 416, 416}}},
		Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{1, 10, 3549}}},
	}.Bytes()...)
	path := filepath.Join(t.TempDir(), "parts.onnx")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	return path
}

// StandInClassifier returns a classifier for the machine of StandInGPU, which hangs as the network "held" of StandInModel.
func StandInClassifier(t testing.TB) string {
	b := testnet.NewBuilder(1)
	x := b.Input("images", 1, 3, 32, 32)
	x = b.Node("Flatten", "/flat", []string{b.Node("GlobalAveragePool", "/pool", []string{x})})
	b.Output(b.Rename(b.Node("Softmax", "/softmax", []string{x}), "scores"), 1, 3)
	m := b.Model(17)
	m.SetMetadata("task", "classify")
	m.SetMetadata("names", "{0: 'red', 1: 'green', 2: 'blue'}")
	file, err := proto.Marshal(m.Proto)
	require.NoError(t, err)
	file = append(file, fake.Model{
		Network: "held",
		Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 32, 32}}},
		Outputs: []engine.TensorInfo{{Name: "scores", Type: engine.Float32, Shape: []int64{1, 3}}},
	}.Bytes()...)
	path := filepath.Join(t.TempDir(), "colours.onnx")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	return path
}
