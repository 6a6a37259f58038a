package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/internal/meminfo"
)

// TestExtremes: the worst of several readings of a Jetson, and of a machine that reports next to nothing.
func TestExtremes(t *testing.T) {
	const mebibyte = 1 << 20
	reading := func(available, nvmap, hertz, events int64, celsius, fan float64) *telemetry.Reading {
		return &telemetry.Reading{
			Memory:       meminfo.Memory{Total: 8000 * mebibyte, Available: available * mebibyte, NvMap: nvmap * mebibyte},
			GPUs:         []telemetry.GPU{{Hertz: hertz * 1e6, MemoryUsed: -1}},
			Temperatures: []telemetry.Temperature{{Name: "tj-thermal", Celsius: celsius}},
			Rails:        []telemetry.Rail{{Name: "VDD_IN", Watts: celsius / 10}},
			Fans:         []telemetry.Fan{{Name: "fan", Duty: fan}},
			OverCurrents: events,
		}
	}
	var e extremes
	e.add(reading(4000, 200, 306, 7, 50, 20))
	worst := reading(1500, 900, 918, 9, 91, 100)
	worst.Throttled = []telemetry.Slowdown{{Cause: telemetry.Heat, Part: "cpu-throttle-alert"}}
	e.add(worst)
	e.add(reading(3000, 300, 624, 9, 60, 40))
	assert.Equal(t, "least memory available 1500 of 8000 MiB; GPU memory 900 MiB at most; GPU clock 306 to 918 MHz; "+
		"tj-thermal 91 degrees Celsius at most; VDD_IN 9.1 W at most; fan 100 % at most; throttled by cpu-throttle-alert: heat; "+
		"2 over-current events", e.String())

	e = extremes{}
	e.add(&telemetry.Reading{Memory: meminfo.Memory{Total: 8000 * mebibyte, Available: 4000 * mebibyte, NvMap: -1}, OverCurrents: -1})
	assert.Equal(t, "least memory available 4000 of 8000 MiB; not throttled", e.String())
}
