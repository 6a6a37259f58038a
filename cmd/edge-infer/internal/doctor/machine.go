package doctor

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

// machine says what this is. JetPack 5.1 is the first with a TensorRT that edge-infer speaks to.
func (d *Doctor) machine(board *cuda.Jetson, reading *telemetry.Reading) Finding {
	const check = "machine"
	if board == nil {
		return ok(check, "%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, reading.CPU.Count)
	}
	model := board.Model
	if model == "" {
		model = "NVIDIA Jetson"
	}
	switch {
	case board.Release == "":
		return warn(check, "in a container, mount /etc/nv_tegra_release and start it with --runtime nvidia", "%s, Jetson Linux unknown", model)
	case strings.HasPrefix(board.Release, "32.") || strings.HasPrefix(board.Release, "35.1."):
		return fail(check, "update to JetPack 5.1 or newer", "%s, Jetson Linux %s (JetPack %s): TensorRT is older than 8.5", model,
			board.Release, board.JetPack)
	case board.JetPack == "":
		return ok(check, "%s, Jetson Linux %s", model, board.Release)
	}
	return ok(check, "%s, Jetson Linux %s (JetPack %s)", model, board.Release, board.JetPack)
}

// enoughMemory is what building an engine takes besides the daemon, measured with small detection networks.
const enoughMemory = 2 << 30

func (d *Doctor) memory(board *cuda.Jetson, reading *telemetry.Reading) Finding {
	const check = "memory"
	m := reading.Memory
	if m.Total < 0 || m.Available < 0 {
		return warn(check, "mount /proc", "the kernel does not tell")
	}
	swap := "no swap"
	if m.SwapTotal > 0 {
		swap = gibibytes(m.SwapTotal) + " swap"
	}
	f := ok(check, "%s, %s available, %s", gibibytes(m.Total), gibibytes(m.Available), swap)
	if m.Available+max(0, m.SwapFree) < enoughMemory || board != nil && m.SwapTotal <= 0 {
		f.Status = Warn
		f.Fix = "add swap, or building an engine may end with Killed: sudo fallocate -l 4G /swapfile && sudo chmod 600 /swapfile && " +
			"sudo mkswap /swapfile && sudo swapon /swapfile"
	}
	return f
}

func gibibytes(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// powerMode warns when nvpmodel has a faster mode than the one in force. NVIDIA calls that mode MAXN, or MAXN_SUPER.
func (d *Doctor) powerMode(reader *telemetry.Reader, reading *telemetry.Reading) Finding {
	const check = "power mode"
	if reading.PowerMode == "" {
		return warn(check, "sudo nvpmodel -q", "nvpmodel does not tell")
	}
	modes := reader.PowerModes()
	best := -1
	for _, id := range slices.Sorted(maps.Keys(modes)) {
		if strings.HasPrefix(modes[id], "MAXN") && (best < 0 || len(modes[id]) > len(modes[best])) {
			best = id
		}
	}
	if best < 0 || modes[best] == reading.PowerMode {
		return ok(check, "%s", reading.PowerMode)
	}
	return warn(check, "sudo nvpmodel -m "+strconv.Itoa(best)+", where power supply and cooling allow it", "%s; %s is faster",
		reading.PowerMode, modes[best])
}

// clocks says whether the clock of a Jetson's GPU is fixed, or how that of the CPU is governed.
func clocks(board *cuda.Jetson, reading *telemetry.Reading) []Finding {
	const check = "clocks"
	if board != nil && len(reading.GPUs) > 0 && reading.GPUs[0].MaxHertz > 0 {
		g := reading.GPUs[0]
		if g.MinHertz == g.MaxHertz {
			return []Finding{ok(check, "GPU fixed at %d MHz", g.MaxHertz/1e6)}
		}
		return []Finding{warn(check, "sudo jetson_clocks, for the shortest and steadiest latency",
			"GPU between %d and %d MHz, now %d", g.MinHertz/1e6, g.MaxHertz/1e6, g.Hertz/1e6)}
	}
	if reading.CPU.Governor == "" || reading.CPU.Hertz < 0 {
		return nil
	}
	return []Finding{ok(check, "CPU governor %s, %d of %d MHz", reading.CPU.Governor, reading.CPU.Hertz/1e6, reading.CPU.MaxHertz/1e6)}
}

func temperature(reading *telemetry.Reading) []Finding {
	const check = "temperature"
	if len(reading.Throttled) > 0 {
		var parts []string
		for _, s := range reading.Throttled {
			parts = append(parts, fmt.Sprintf("%s (%s)", s.Part, s.Cause))
		}
		return []Finding{
			warn(check, "improve cooling and power supply, or raise the cameras' interval", "slowed down now: %s", strings.Join(parts, ", ")),
		}
	}
	// 100 degrees puts sensors with and without a limit on one scale.
	hottest := reading.Hottest(100)
	if hottest == nil {
		return nil
	}
	if hottest.Limit == 0 {
		return []Finding{ok(check, "%s %.1f °C", hottest.Name, hottest.Celsius)}
	}
	f := ok(check, "%s %.1f °C, slows down at %.0f", hottest.Name, hottest.Celsius, hottest.Limit)
	if hottest.Celsius > hottest.Limit-5 {
		f.Status, f.Fix = Warn, "improve cooling, or raise the cameras' interval"
	}
	return []Finding{f}
}

// clock looks at the time of day, which goes into every message.
func (d *Doctor) clock() Finding {
	const check = "clock"
	const fix = "sudo timedatectl set-ntp true"
	switch good, err := d.Synchronized(); {
	case err != nil:
		return warn(check, fix, "cannot ask: %v", err)
	case !good:
		return warn(check, fix, "not synchronized: times in messages may be wrong")
	}
	return ok(check, "synchronized")
}

func synchronized() (bool, error) {
	var state unix.Timex // without modes nothing is set
	if _, err := unix.Adjtimex(&state); err != nil {
		return false, err
	}
	return state.Status&unix.STA_UNSYNC == 0, nil
}
