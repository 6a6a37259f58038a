package onnxruntime_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
)

// gpuEnvironment asks for the tests that need a real GPU. They also need a libonnxruntime with CUDA in $EDGE_INFER_ONNXRUNTIME, with
// libonnxruntime_providers_cuda.so and libonnxruntime_providers_shared.so beside it, and CUDA's libraries and cuDNN in $LD_LIBRARY_PATH.
const gpuEnvironment = "EDGE_INFER_TEST_GPU"

// TestHardwareCUDA runs the contract suite on the CUDA provider, and compares a larger network with the CPU.
func TestHardwareCUDA(t *testing.T) {
	if os.Getenv(gpuEnvironment) == "" {
		t.Skip("needs a GPU: set " + gpuEnvironment + "=1 on a machine that has one")
	}
	onCUDA := func(o engine.Options) (engine.Engine, error) {
		o.Provider = engine.CUDA
		return onnxruntime.Open(o)
	}
	enginetest.Run(t, enginetest.Backend{Open: onCUDA, SmallTypes: true, FreeSides: true, AllocationsPerFrame: 100})

	img := engine.Image{Data: make([]byte, 3*640*480), Width: 640, Height: 480, Stride: 3 * 640, Format: engine.BGR}
	for i := range img.Data {
		img.Data[i] = byte(i * 7 / 3)
	}
	var outputs [][]float32
	for _, open := range []func(engine.Options) (engine.Engine, error){onnxruntime.Open, onCUDA} {
		e, err := open(enginetest.Network(t, "detector"))
		require.NoError(t, err)
		require.NoError(t, e.Submit(0, []engine.Image{img}))
		result, err := e.Wait(0)
		require.NoError(t, err)
		outputs = append(outputs, append([]float32(nil), result.Outputs[0].Float32s()...))
		t.Logf("%s: %.3f ms", e.Model().Device, float64(result.Timing.Inference)/1e6)
		require.NoError(t, e.Close())
	}
	largest := float32(0)
	for i, want := range outputs[0] {
		largest = max(largest, max(want-outputs[1][i], outputs[1][i]-want))
	}
	t.Logf("largest difference %g", largest)
	require.Less(t, largest, float32(0.01), "TF32 keeps ten bits")
}
