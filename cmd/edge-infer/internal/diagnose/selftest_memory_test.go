package diagnose

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/nvdec"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

// TestMissingParts: on a machine without managed memory the other times are measured, and one without a decoder on the GPU gets the reason.
func TestMissingParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	driver, err := fake.Build(dir, 0)
	require.NoError(t, err)
	kernels, err := fake.Compile(filepath.Join(dir, "kernels.so"), "-x", "c++", "-std=c++17", "../../../../engine/preprocess/kernels.cu",
		"-lstdc++", "-lm")
	require.NoError(t, err)
	fake.Another(t, "TestChildMissingParts", cuda.LibraryEnvironment+"="+driver, "FAKE_CUDA_KERNELS="+kernels,
		"FAKE_CUDA=fail=cuMemAllocManaged:801", nvdec.LibraryEnvironment+"=/none.so", "GST_PLUGIN_PATH=")
}

func TestChildMissingParts(t *testing.T) {
	fake.Child(t)
	r := &request{Codec: "h264", note: func(string) {}}
	times := resultOf(r.memoryTimes(t.Context()))
	assert.Equal(t, OK, times.Status, times.Detail)
	assert.Regexp(t, `mapped \d+ us, copied \d+ us, managed not available: cuda allocate: managed memory: `, times.Detail)
	decoded := resultOf(r.decodedTimes(t.Context()))
	assert.Equal(t, skip("", "open: no NVDEC: /none.so: cannot open shared object file: No such file or directory; "+
		"open: nvv4l2decoder is not installed"), decoded)

	t.Setenv("FAKE_CUDA", "fail=cuLaunchKernel:719")
	times = resultOf(r.memoryTimes(t.Context()))
	assert.Equal(t, Fail, times.Status)
	assert.Contains(t, times.Detail, "cuda launch: kernel: launch failed (719)")
}
