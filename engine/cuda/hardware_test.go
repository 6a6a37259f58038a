package cuda

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gpuEnvironment asks for the tests that need a real GPU: go test -c ./engine/cuda, then EDGE_INFER_TEST_GPU=1 ./cuda.test -test.run
// Hardware -test.v.
const gpuEnvironment = "EDGE_INFER_TEST_GPU"

func needsGPU(t *testing.T) {
	t.Helper()
	if os.Getenv(gpuEnvironment) == "" {
		t.Skip("needs a GPU: set " + gpuEnvironment + "=1 on a machine that has one")
	}
}

func TestHardwareReport(t *testing.T) {
	needsGPU(t)
	r := Probe()
	require.NoError(t, r.Err())
	text, err := json.MarshalIndent(r, "", "  ")
	require.NoError(t, err)
	t.Logf("%s", text)
	assert.Empty(t, r.Reason)
	for _, device := range r.Devices {
		assert.NotEmpty(t, device.Name)
		assert.Positive(t, device.Memory)
		assert.Positive(t, device.Multiprocessors)
	}
}

// Contexts one after the other, each the first and last of its time.
func TestHardwareContextsAreFreed(t *testing.T) {
	needsGPU(t)
	var flat int64
	for cycle := range 20 {
		d, err := Open(0)
		require.NoError(t, err)
		free, _, err := memoryInfo(d)
		require.NoError(t, err)
		require.NoError(t, d.Close())
		if cycle == 2 {
			flat = free
		}
		if cycle > 2 {
			require.Equal(t, flat, free, "cycle %d", cycle)
		}
	}
}
