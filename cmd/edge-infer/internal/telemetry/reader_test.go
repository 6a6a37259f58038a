package telemetry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/meminfo"
)

// machine unpacks a recorded machine: each line is a path, a tab and the content, in which \n and \0 stand for what they stand for in C.
func machine(t testing.TB, name string) string {
	t.Helper()
	root := t.TempDir()
	recorded, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	require.NoError(t, err)
	for line := range strings.Lines(string(recorded)) {
		path, content, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		write(t, root, path, strings.NewReplacer(`\n`, "\n", `\0`, "\x00", `\xff`, "\xff", `\xfe`, "\xfe").Replace(content)+"\n")
	}
	return root
}

func write(t testing.TB, root, path, content string) {
	t.Helper()
	file := filepath.Join(root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
}

const noNVML = "/no/such/libnvidia-ml.so.1"

// reader reads a recorded machine without NVML.
func reader(t testing.TB, root string) *Reader {
	r := &Reader{Root: root, NVML: noNVML, Disk: "/no/such/directory"}
	t.Cleanup(r.Close)
	return r
}

// nothing is a reading of a machine that tells nothing.
func nothing() Reading {
	return Reading{
		Temperatures: []Temperature{}, Rails: []Rail{}, GPUs: []GPU{}, CPU: CPU{Load: -1, Average: -1, Hertz: -1, MaxHertz: -1},
		Memory: meminfo.Memory{Total: -1, Available: -1, SwapTotal: -1, SwapFree: -1, NvMap: -1}, EMC: EMC{-1, -1, -1}, Disk: Disk{-1, -1},
		OverCurrents: -1,
	}
}

func TestMachines(t *testing.T) {
	for _, test := range []struct {
		name string
		want func(r *Reading)
	}{
		{"orin-nano", func(r *Reading) {
			r.Temperatures = []Temperature{{"cpu-thermal", 52.062, 99}, {"gpu-thermal", 53.468, 99}, {"tj-thermal", 53.468, 0}}
			r.Rails = []Rail{{"VDD_IN", 5.08 * 1.25, 5.08, 1.25}, {"VDD_CPU_GPU_CV", 5.072 * 0.5, 5.072, 0.5}}
			r.GPUs = []GPU{{"GPU", 61.2, -1, 624750000, 306000000, 918000000, -1, -1}}
			r.CPU = CPU{Count: 6, Load: -1, Average: 1.25, Hertz: 1344000000, MaxHertz: 1728000000, Governor: "schedutil"}
			r.Memory = meminfo.Memory{
				Total: 7802024 << 10, Available: 4012344 << 10, SwapTotal: 3901008 << 10, SwapFree: 3900000 << 10, NvMap: 210000 << 10,
			}
			r.Fans = []Fan{{"fan", 100 * 102.0 / 255, 2310}}
			r.PowerMode = "25W"
			r.OverCurrents = 7
		}},
		{"agx-orin", func(r *Reading) {
			r.Temperatures = []Temperature{{"CPU-therm", 98.5, 97}}
			r.Rails = []Rail{
				{"VDD_GPU_SOC", 19.8 * 1.4, 19.8, 1.4}, {"VDD_CPU_CV", 19.8 * 0.72, 19.8, 0.72}, {"VDDQ_VDD2_1V8AO", 19.832 * 0.04, 19.832, 0.04},
			}
			r.GPUs = []GPU{{"GPU", 100, -1, -1, -1, -1, -1, -1}}
			r.Memory = meminfo.Memory{
				Total: 31270620 << 10, Available: 28012344 << 10, SwapTotal: 15635300 << 10, SwapFree: 15635300 << 10, NvMap: -1,
			}
			r.EMC = EMC{35, 3199000000, 3199000000}
			r.PowerMode = "MAXN"
			r.Throttled = []Slowdown{{Heat, "cpu-throttle-alert"}, {Heat, "cpufreq-cpu0"}, {OverCurrent, "VDD_GPU_SOC"}}
		}},
		{"xavier", func(r *Reading) {
			r.Temperatures = []Temperature{{"AUX-therm", 38.5, 0}, {"AUX-therm 2", -4, 0}}
			r.Rails = []Rail{{"GPU", 0, 19.08, 0}, {"GPU 2", 19.08 * 0.1, 19.08, 0.1}}
			r.GPUs = []GPU{{"GPU", 0, -1, 114750000, 114750000, 1377000000, -1, -1}}
			r.PowerMode = "7" // that the configuration does not name
		}},
		{"thor", func(r *Reading) {
			r.Temperatures = []Temperature{{"soc012-thermal", 41, 0}}
			r.Rails = []Rail{{"ina238", 24.5, -1, -1}}
			r.GPUs = []GPU{{"GPU", -1, -1, 1575000000, 315000000, 1575000000, -1, -1}}
			r.EMC = EMC{-1, 4266000000, 4266000000}
			r.PowerMode = "120W"
		}},
		{"plain-pc", func(r *Reading) {
			r.Temperatures = []Temperature{
				{"acpitz", 27.8, 0},
				{"x86_pkg_temp", 61, 0},
				{"coretemp Package id 0", 61, 80},
				{"coretemp Core 0", 59, 80},
				{"nvme Composite", 38.85, 0},
			}
			r.CPU = CPU{Count: 2, Load: -1, Average: 0.2, Hertz: 2400000000, MaxHertz: 4200000000, Governor: "powersave"}
			r.Memory = meminfo.Memory{Total: 16303412 << 10, Available: 12012344 << 10, SwapTotal: 0, SwapFree: 0, NvMap: -1}
			r.Throttled = []Slowdown{{Heat, "Processor"}}
		}},
		{"garbage", func(r *Reading) { r.EMC.Hertz = 0 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			want, got := nothing(), reader(t, machine(t, test.name)).Read()
			test.want(&want)
			assert.WithinDuration(t, time.Now(), got.Time, time.Minute)
			want.Time = got.Time
			for i := range want.Rails {
				if i < len(got.Rails) {
					assert.InDelta(t, want.Rails[i].Watts, got.Rails[i].Watts, 1e-9)
					want.Rails[i].Watts = got.Rails[i].Watts
				}
			}
			assert.Equal(t, &want, got)
		})
	}
}

func TestEmptyMachine(t *testing.T) {
	want, got := nothing(), reader(t, t.TempDir()).Read()
	want.Time = got.Time
	assert.Equal(t, &want, got)
}

// This machine, whatever it is: it has memory, processors and a disk.
func TestThisMachine(t *testing.T) {
	r := &Reader{}
	defer r.Close()
	got := r.Read()
	t.Logf("%+v", got)
	assert.Positive(t, got.CPU.Count)
	assert.Positive(t, got.Memory.Total)
	assert.Positive(t, got.Memory.Available)
	assert.Positive(t, got.Disk.Total)
	assert.GreaterOrEqual(t, got.CPU.Average, 0.0)
}

func TestUnreadableFiles(t *testing.T) {
	root := machine(t, "orin-nano")
	zone := filepath.Join(root, "/sys/class/thermal/thermal_zone0/temp")
	require.NoError(t, os.Remove(zone))
	require.NoError(t, os.Mkdir(zone, 0o755)) // reading it fails, for root as well
	r := reader(t, root)
	assert.Equal(t, "gpu-thermal", r.Read().Temperatures[0].Name)
	require.NoError(t, os.RemoveAll(filepath.Join(root, "sys")))
	got := r.Read()
	assert.Empty(t, got.Temperatures)
	assert.Empty(t, got.Rails)
	assert.Empty(t, got.GPUs)
}

func TestProcessorLoad(t *testing.T) {
	root := t.TempDir()
	r := reader(t, root)
	for _, step := range []struct {
		stat string
		load float64
	}{
		{"cpu  100 0 100 800 0 0 0 0\n", -1},
		{"cpu  150 0 125 900 25 0 0 0\n", 37.5},
		{"cpu  150 0 125 900 25 0 0 0\n", -1}, // no time has passed
		{"cpu  10 0 10 90 0 0 0 0\n", -1},     // counters went back
		{"cpu  20 0 10 90 0 0 0 0\n", 100},
		{"cpu  x 0 10 90 0 0 0 0\n", -1},
		{"", -1},
	} {
		write(t, root, "/proc/stat", step.stat)
		assert.Equal(t, step.load, r.Read().CPU.Load, step.stat)
	}
}

func TestNewSensorsAreFound(t *testing.T) {
	root := t.TempDir()
	r := reader(t, root)
	assert.Empty(t, r.Read().Temperatures)
	write(t, root, "/sys/class/thermal/thermal_zone0/type", "late\n")
	write(t, root, "/sys/class/thermal/thermal_zone0/temp", "40000\n")
	assert.Empty(t, r.Read().Temperatures)
	r.lastScan = time.Now().Add(-rescanInterval)
	assert.Equal(t, []Temperature{{Name: "late", Celsius: 40}}, r.Read().Temperatures)
}

func TestSensorsAreBounded(t *testing.T) {
	root := t.TempDir()
	for i := range 2 * maxSensors {
		dir := fmt.Sprintf("/sys/class/thermal/thermal_zone%d", i)
		write(t, root, dir+"/type", "same\n")
		write(t, root, dir+"/temp", "40000\n")
	}
	got := reader(t, root).Read().Temperatures
	require.Len(t, got, maxSensors)
	assert.Equal(t, "same 48", got[maxSensors-1].Name)
}

// A reading every few seconds must not feed the garbage collector: what it allocates is what it hands out, and file names.
func TestReadAllocatesLittle(t *testing.T) {
	r := reader(t, machine(t, "orin-nano"))
	r.Read()
	allocations := testing.AllocsPerRun(20, func() { r.Read() })
	t.Log(allocations, "allocations")
	assert.Less(t, allocations, 200.0)
}

// FuzzFiles gives the files whose text is parsed anything. All of them are one file in memory, which makes an execution a hundred
// microseconds.
func FuzzFiles(f *testing.F) {
	f.Add([]byte("cpu  1 2 3 4\ncpu0 1\n"))
	f.Add([]byte("MemTotal: 1 kB\n"))
	f.Add([]byte("< POWER_MODEL ID=1 NAME=X >"))
	f.Add([]byte("pmode:0001"))
	f.Add(bytes.Repeat([]byte("cpu"), 400))
	root, err := os.MkdirTemp("/dev/shm", "telemetry-")
	require.NoError(f, err)
	f.Cleanup(func() { _ = os.RemoveAll(root) })
	content, err := os.Create(filepath.Join(root, "content"))
	require.NoError(f, err)
	defer content.Close()
	for _, file := range []string{
		"/proc/stat", "/proc/meminfo", "/proc/loadavg", "/etc/nvpmodel.conf", "/var/lib/nvpmodel/status", "/etc/nv_tegra_release",
		"/sys/class/thermal/thermal_zone0/type", "/sys/class/thermal/thermal_zone0/temp", "/sys/devices/gpu.0/load",
	} {
		require.NoError(f, os.MkdirAll(filepath.Dir(root+file), 0o755))
		require.NoError(f, os.Link(content.Name(), root+file))
	}
	write(f, root, "/proc/device-tree/compatible", "nvidia,tegra234")
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, content.Truncate(0))
		_, err := content.WriteAt(data, 0)
		require.NoError(t, err)
		r := &Reader{Root: root, FilesOnly: true, Disk: "/no/such/directory"}
		for range 2 {
			got := r.Read()
			require.LessOrEqual(t, got.CPU.Load, 100.0)
			require.GreaterOrEqual(t, got.Memory.Total, int64(-1))
		}
	})
}

// TestOverCurrentEvents: a counter that rises between two readings is throttling, however short it was.
func TestOverCurrentEvents(t *testing.T) {
	root := machine(t, "orin-nano")
	r := reader(t, root)
	first := r.Read()
	assert.Equal(t, int64(7), first.OverCurrents)
	assert.Empty(t, first.Throttled, "events before the first reading")
	write(t, root, "/sys/class/hwmon/hwmon2/oc3_event_cnt", "9\n")
	r.lastScan = time.Time{} // a new list of files keeps the counts
	second := r.Read()
	assert.Equal(t, int64(9), second.OverCurrents)
	assert.Equal(t, []Slowdown{{OverCurrent, "soctherm oc3"}}, second.Throttled)
	assert.Empty(t, r.Read().Throttled)
}
