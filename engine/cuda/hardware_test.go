package cuda

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

func TestHardwareReport(t *testing.T) {
	fake.Hardware(t)
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
	fake.Hardware(t)
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
