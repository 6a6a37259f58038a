package diagnose

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// machine describes the machine. JetPack 5.1 is the first with a supported TensorRT.
func (d *Doctor) machine(board *cuda.Jetson, reading *telemetry.Reading) Check {
	const name = "machine"
	if board == nil {
		return ok(name, "%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, reading.CPU.Count)
	}
	model := board.Model
	if model == "" {
		model = "NVIDIA Jetson"
	}
	switch {
	case board.Release == "":
		return warn(name, "in a container, mount /etc/nv_tegra_release and start it with --runtime nvidia", "%s, Jetson Linux unknown", model)
	case strings.HasPrefix(board.Release, "32.") || strings.HasPrefix(board.Release, "35.1."):
		return fail(name, "update to JetPack 5.1 or newer", "%s, Jetson Linux %s (JetPack %s): TensorRT is older than 8.5", model,
			board.Release, board.JetPack)
	case board.JetPack == "":
		return ok(name, "%s, Jetson Linux %s", model, board.Release)
	}
	return ok(name, "%s, Jetson Linux %s (JetPack %s)", model, board.Release, board.JetPack)
}

// enoughMemory is the memory in bytes that building an engine plan needs besides the daemon, measured with small detectors.
const enoughMemory = 2 << 30

func (d *Doctor) memory(board *cuda.Jetson, reading *telemetry.Reading) Check {
	const name = "memory"
	m := reading.Memory
	if m.Total < 0 || m.Available < 0 {
		return warn(name, "mount /proc", "/proc/meminfo is not readable")
	}
	swap := "no swap"
	if m.SwapTotal > 0 {
		swap = gibibytes(m.SwapTotal) + " swap"
	}
	if m.NvMap >= 0 {
		swap += ", " + gibibytes(m.NvMap) + " held by GPU, video engines and cameras"
	}
	c := ok(name, "%s, %s available, %s", gibibytes(m.Total), gibibytes(m.Available), swap)
	if m.Available+max(0, m.SwapFree) < enoughMemory || board != nil && m.SwapTotal <= 0 {
		c.Status = Warn
		c.Remedy = "add 4 GiB of swap, or the kernel may end the build of an engine plan: sudo fallocate -l 4G /swapfile && " +
			"sudo chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile"
	}
	return c
}

func gibibytes(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// powerMode warns if nvpmodel has a faster mode than the current one. NVIDIA calls it MAXN or MAXN_SUPER.
func (d *Doctor) powerMode(reader *telemetry.Reader, reading *telemetry.Reading) Check {
	const name = "power mode"
	if reading.PowerMode == "" {
		return warn(name, "sudo nvpmodel -q", "nvpmodel reports no mode")
	}
	if n := reading.OverCurrents; n > 0 { // a faster mode would bring more of them
		return warn(name, "use a stronger power supply, or a mode with a lower limit: sudo nvpmodel -m NUMBER",
			"%s; throttled %d times by over-current since boot", reading.PowerMode, n)
	}
	modes := reader.PowerModes()
	best := -1
	for _, id := range slices.Sorted(maps.Keys(modes)) {
		if strings.HasPrefix(modes[id], "MAXN") && (best < 0 || len(modes[id]) > len(modes[best])) {
			best = id
		}
	}
	if best < 0 || modes[best] == reading.PowerMode {
		return ok(name, "%s", reading.PowerMode)
	}
	return warn(name, "sudo nvpmodel -m "+strconv.Itoa(best)+", where power supply and cooling allow it", "%s; %s is faster",
		reading.PowerMode, modes[best])
}

// clocks checks that the clock of a Jetson's GPU is fixed; elsewhere it reports the CPU's frequency governor.
func clocks(board *cuda.Jetson, reading *telemetry.Reading) []Check {
	const name = "clocks"
	if board != nil && len(reading.GPUs) > 0 && reading.GPUs[0].MaxHertz > 0 {
		g := reading.GPUs[0]
		if g.MinHertz == g.MaxHertz {
			return []Check{ok(name, "GPU fixed at %d MHz", g.MaxHertz/1e6)}
		}
		return []Check{warn(name, "sudo jetson_clocks, for a lower and steadier latency",
			"GPU between %d and %d MHz, now %d", g.MinHertz/1e6, g.MaxHertz/1e6, g.Hertz/1e6)}
	}
	if reading.CPU.Governor == "" || reading.CPU.Hertz < 0 {
		return nil
	}
	return []Check{ok(name, "CPU governor %s, %d of %d MHz", reading.CPU.Governor, reading.CPU.Hertz/1e6, reading.CPU.MaxHertz/1e6)}
}

func temperature(reading *telemetry.Reading) []Check {
	const name = "temperature"
	if len(reading.Throttled) > 0 {
		var parts []string
		for _, s := range reading.Throttled {
			parts = append(parts, fmt.Sprintf("%s (%s)", s.Part, s.Cause))
		}
		return []Check{
			warn(name, "improve cooling and power supply, or raise the cameras' interval", "throttled: %s", strings.Join(parts, ", ")),
		}
	}
	// A limit of 100 degrees makes sensors without a limit comparable.
	hottest := reading.Hottest(100)
	if hottest == nil {
		return nil
	}
	if hottest.Limit == 0 {
		return []Check{ok(name, "%s %.1f °C", hottest.Name, hottest.Celsius)}
	}
	c := ok(name, "%s %.1f °C, throttles at %.0f", hottest.Name, hottest.Celsius, hottest.Limit)
	if hottest.Celsius > hottest.Limit-5 {
		c.Status, c.Remedy = Warn, "improve cooling, or raise the cameras' interval"
	}
	return []Check{c}
}

// clock checks the time of day, which is part of every message.
func (d *Doctor) clock() Check {
	const name = "clock"
	const remedy = "sudo timedatectl set-ntp true"
	switch good, err := d.Synchronized(); {
	case err != nil:
		return warn(name, remedy, "state unknown: %v", err)
	case !good:
		return warn(name, remedy, "not synchronized: times in messages may be wrong")
	}
	return ok(name, "synchronized")
}

func synchronized() (bool, error) {
	var state unix.Timex // Modes 0: read only
	if _, err := unix.Adjtimex(&state); err != nil {
		return false, err
	}
	return state.Status&unix.STA_UNSYNC == 0, nil
}
