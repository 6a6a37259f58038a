package cuda

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

func TestProbe(t *testing.T) {
	t.Setenv("FAKE_CUDA", "devices=2")
	r := Prober{Root: t.TempDir(), NVML: "/no/such/libnvidia-ml.so.1"}.Probe()
	require.NoError(t, r.Err())
	assert.Equal(t, os.Getenv(LibraryEnvironment), r.Driver.Path)
	assert.Equal(t, fake.Version, r.Driver.Version)
	require.Len(t, r.Devices, 2)
	assert.Equal(t, "Fake GPU 1", r.Devices[1].Name)
	assert.Equal(t, 1, r.Devices[1].Ordinal)
	assert.Nil(t, r.Jetson)
	assert.Equal(t, NVML{Reason: "libnvidia-ml.so.1 not found"}, r.NVML)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"name":"Fake GPU 0"`)
}

func TestProbeSaysWhyNot(t *testing.T) {
	for _, test := range []struct{ settings, reason, hint string }{
		{
			"devices=0", "the driver works: no device (100)",
			"no NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with --gpus all or --runtime nvidia",
		},
		{
			"version=10020", "the driver supports CUDA 10.2, 11.4 or newer is needed",
			"update to JetPack 5.1 or newer, or to NVIDIA driver 470 or newer",
		},
		{
			"fail=cuDeviceTotalMem_v2:999", "memory size of Fake GPU 0: unknown error (999)",
			"the driver library and the kernel module do not fit or the module hangs: reboot, then check nvidia-smi",
		},
	} {
		t.Run(test.settings, func(t *testing.T) {
			t.Setenv("FAKE_CUDA", test.settings)
			r := Prober{Root: t.TempDir(), NVML: "/no/such/libnvidia-ml.so.1"}.Probe()
			require.ErrorIs(t, r.Err(), engine.ErrUnavailable)
			assert.Equal(t, test.reason, r.Reason)
			assert.Equal(t, test.hint, r.Hint)
		})
	}
}

func TestJetson(t *testing.T) {
	const orin = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64, DATE: Wed Jan  8 01:49:37 UTC 2025\n"
	load := map[string]string{
		"etc/nv_tegra_release":                               orin,
		"proc/device-tree/model":                             "NVIDIA Jetson Orin Nano Developer Kit\x00",
		"sys/class/devfreq/17000000.gpu/device/of_node/name": "gpu\x00",
		"sys/class/devfreq/17000000.gpu/device/load":         "437\n",
		"sys/class/devfreq/17000000.gpu/cur_freq":            "624750000\n",
		"sys/class/devfreq/17000000.gpu/min_freq":            "slow\n",
		"sys/class/devfreq/17000000.gpu/max_freq":            "1020000000\n",
		"sys/class/devfreq/other/device/of_node/name":        "emc\x00",
	}
	for _, test := range []struct {
		name  string
		files map[string]string
		want  *Jetson
	}{
		{"desktop", map[string]string{"proc/device-tree/compatible": "raspberrypi,5-model-b\x00"}, nil},
		{
			"orin", load,
			&Jetson{
				Model: "NVIDIA Jetson Orin Nano Developer Kit", Release: "36.4.3", JetPack: "6.2",
				Load: &Load{Percent: 43.7, Hertz: 624750000, MinHertz: -1, MaxHertz: 1020000000},
			},
		},
		{"unknown release", map[string]string{"etc/nv_tegra_release": "# R40 (release), REVISION: 1, GCID: 1"}, &Jetson{Release: "40.1.0"}},
		{
			"older than the first of its line",
			map[string]string{"etc/nv_tegra_release": "# R36 (release), REVISION: 2.0"},
			&Jetson{Release: "36.2.0"},
		},
		{
			"container",
			map[string]string{"proc/device-tree/compatible": "nvidia,p3701-0000\x00nvidia,tegra234\x00", "sys/devices/gpu.0/load": "1000"},
			&Jetson{Load: &Load{Percent: 100, Hertz: -1, MinHertz: -1, MaxHertz: -1}},
		},
		{
			"thor has no load",
			map[string]string{
				"etc/nv_tegra_release": "# R38 (release), REVISION: 2.1", "sys/class/devfreq/gpu-gpc-0/cur_freq": "1575000000",
				"sys/class/devfreq/gpu-gpc-0/min_freq": "315000000", "sys/class/devfreq/gpu-gpc-0/max_freq": "1575000000",
			},
			&Jetson{Release: "38.2.1", JetPack: "7.0", Load: &Load{Percent: -1, Hertz: 1575000000, MinHertz: 315000000, MaxHertz: 1575000000}},
		},
		{
			"garbage",
			map[string]string{"etc/nv_tegra_release": "\xff# R99999999999999999999 (release), REVISION: 1"},
			&Jetson{Release: "9223372036854775807.1.0"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range test.files {
				path := filepath.Join(root, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			assert.Equal(t, test.want, Prober{Root: root}.Jetson())
		})
	}
}

// One GPU of a library that lacks the power and utilization functions, as some boards' do.
const management = `
#include <stdio.h>
#include <string.h>
int nvmlInit_v2(void) { return RESULT; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "540.4.0"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)1; return index ? 4 : 0; }
int nvmlDeviceGetName(void *device, char *text, unsigned size) { snprintf(text, size, "Orin (nvgpu)"); return 0; }
int nvmlDeviceGetUUID(void *device, char *text, unsigned size) { snprintf(text, size, "GPU-1"); return 0; }
int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *memory) { memory[0] = 100; memory[1] = 60; memory[2] = 40; return 0; }
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius) { return 3; }
int nvmlDeviceGetTemperatureThreshold(void *device, int threshold, unsigned *celsius) { *celsius = 90; return threshold == 1 ? 0 : 2; }
int nvmlDeviceGetClockInfo(void *device, int clock, unsigned *megahertz) { *megahertz = 900; return clock == 1 ? 0 : 2; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) { *reasons = 0x41; return 0; }
`

func TestNVML(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "management.c")
	require.NoError(t, os.WriteFile(source, []byte(management), 0o600))
	for _, test := range []struct {
		result string
		want   NVML
	}{
		{"9", NVML{Reason: "the NVIDIA kernel module is not loaded"}},
		{"999", NVML{Reason: "NVML does not start: error 999"}},
		{"0", NVML{DriverVersion: "540.4.0", Devices: []NVMLDevice{
			{
				Name: "Orin (nvgpu)", UUID: "GPU-1", MemoryUsed: 40, MemoryTotal: 100, Utilization: -1, Decoder: -1, Temperature: -1, Limit: 90,
				Power: -1, Hertz: 900e6, MaxHertz: -1, Throttled: []string{"heat"},
			},
		}}},
	} {
		t.Run("init "+test.result, func(t *testing.T) {
			library, err := fake.Compile(filepath.Join(dir, "libnvidia-ml-"+test.result+".so"), "-DRESULT="+test.result, source)
			require.NoError(t, err)
			// A process of its own: go-nvml keeps a library that did not start.
			text, err := json.Marshal(test.want)
			require.NoError(t, err)
			fake.Another(t, "TestChildNVML", "NVML_LIBRARY="+library, "NVML_WANT="+string(text))
		})
	}
}

func TestChildNVML(t *testing.T) {
	fake.Child(t)
	text, err := json.Marshal(Prober{NVML: os.Getenv("NVML_LIBRARY")}.nvml())
	require.NoError(t, err)
	assert.Equal(t, os.Getenv("NVML_WANT"), string(text))
}
