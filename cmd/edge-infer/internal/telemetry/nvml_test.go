package telemetry

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

// Two GPUs, the second of which tells nothing but its temperature. The numbers grow from call to call.
const management = `
static unsigned calls;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; calls++; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)(index + 1ul); return 0; }
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) { memory[0] = 100; memory[2] = 40; return device == (void *)1 ? 0 : 3; }
int nvmlDeviceGetUtilizationRates(void *device, unsigned *rates) { rates[0] = 50 + calls; return device == (void *)1 ? 0 : 3; }
int nvmlDeviceGetDecoderUtilization(void *device, unsigned *percent, unsigned *period) { *percent = 12; *period = 1; return device == (void *)1 ? 0 : 3; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) { *celsius = 60; return 0; }
int nvmlDeviceGetTemperatureThreshold(void *device, int threshold, unsigned *celsius) { *celsius = 92; return device == (void *)1 ? 0 : 3; }
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 61500; return device == (void *)1 ? 0 : 3; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { *reasons = 0x24; return device == (void *)1 ? 0 : 3; }
`

const libraryVariable = "TELEMETRY_TEST_NVML"

// go-nvml keeps one library in a process, so this test is one that starts itself again.
func TestNVML(t *testing.T) {
	library := os.Getenv(libraryVariable)
	if library == "" {
		dir := t.TempDir()
		source := filepath.Join(dir, "management.c")
		require.NoError(t, os.WriteFile(source, []byte(management), 0o600))
		path, err := fake.Compile(filepath.Join(dir, "libnvidia-ml.so.1"), source)
		require.NoError(t, err)
		command := exec.Command(os.Args[0], "-test.run=^TestNVML$", "-test.timeout=60s")
		command.Env = append(os.Environ(), libraryVariable+"="+path)
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		return
	}
	r := &Reader{Root: t.TempDir(), NVML: library}
	defer r.Close()
	for call := range 3 {
		got := r.Read()
		assert.Equal(t, []GPU{
			{"GPU 0", 51 + float64(call), 12, -1, -1, -1, 40, 100},
			{"GPU 1", -1, -1, -1, -1, -1, -1, -1},
		}, got.GPUs)
		assert.Equal(t, []Temperature{{"GPU 0", 60, 92}, {"GPU 1", 60, 0}}, got.Temperatures)
		assert.Equal(t, []Rail{{"GPU 0", 61.5, -1, -1}}, got.Rails)
		assert.Equal(t, []Slowdown{{PowerCap, "GPU 0"}, {Heat, "GPU 0"}}, got.Throttled)
	}
	r.Close()
	assert.Len(t, r.Read().GPUs, 2, "a reader may be used again")

	r = &Reader{Root: t.TempDir(), NVML: library, FilesOnly: true}
	assert.Empty(t, r.Read().GPUs)
}
