// Package telemetry reads how a machine fares: temperatures, power, load, memory and what throttles it, on Jetsons, on machines with an
// NVIDIA GPU and on any other Linux. Nothing here runs on the frame path.
package telemetry

import (
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/internal/meminfo"
)

// Reading is one reading of the machine's sensors. It is immutable. Unknown numbers are -1; lists may be empty.
type Reading struct {
	Time         time.Time      `json:"time"`
	Temperatures []Temperature  `json:"temperatures"`
	Rails        []Rail         `json:"rails"`
	GPUs         []GPU          `json:"gpus"`
	CPU          CPU            `json:"cpu"`
	Memory       meminfo.Memory `json:"memory"`
	EMC          EMC            `json:"emc"`
	Disk         Disk           `json:"disk"`
	Fans         []Fan          `json:"fans,omitempty"`
	// PowerMode is the name of nvpmodel's mode, empty on other machines than Jetsons.
	PowerMode string `json:"power_mode,omitempty"`
	// OverCurrents is how often a Jetson has throttled because of over-current since it was started.
	OverCurrents int64 `json:"over_currents"`
	// Throttled lists the current causes of throttling.
	Throttled []Slowdown `json:"throttled,omitempty"`
}

// Cause is why hardware runs slower than it could.
type Cause string

// Causes of throttling. PowerCap and PowerBrake are NVML's.
const (
	Heat        Cause = "heat"
	OverCurrent Cause = "over-current"
	PowerCap    Cause = "power cap"
	PowerBrake  Cause = "power brake"
)

// Slowdown is one part that runs slower than it could.
type Slowdown struct {
	Cause Cause  `json:"cause"`
	Part  string `json:"part"` // as the kernel names the cooling device or the rail, or a GPU
}

// addSlowdown notes a slowdown once: each core may have a cooling device of the same name.
func (r *Reading) addSlowdown(cause Cause, part string) {
	s := Slowdown{cause, part}
	if !slices.Contains(r.Throttled, s) {
		r.Throttled = append(r.Throttled, s)
	}
}

// Temperature is one sensor, in degrees Celsius. Names differ from each other.
type Temperature struct {
	Name    string  `json:"name"`
	Celsius float64 `json:"celsius"`
	// Limit is where the kernel begins to slow the machine down for this sensor's sake, 0 when it names no such limit.
	Limit float64 `json:"limit,omitempty"`
}

// Rail is one power rail.
type Rail struct {
	Name    string  `json:"name"`
	Watts   float64 `json:"watts"`
	Volts   float64 `json:"volts"`
	Amperes float64 `json:"amperes"`
}

// GPU is one graphics processor.
type GPU struct {
	Name        string  `json:"name"`
	Load        float64 `json:"load"`    // percent
	Decoder     float64 `json:"decoder"` // load of its video decoders in percent
	Hertz       int64   `json:"hertz"`
	MinHertz    int64   `json:"min_hertz"`
	MaxHertz    int64   `json:"max_hertz"`
	MemoryUsed  int64   `json:"memory_used"` // bytes, of its own memory
	MemoryTotal int64   `json:"memory_total"`
}

// CPU is all processors together.
type CPU struct {
	Count    int     `json:"count"`
	Load     float64 `json:"load"`    // percent of all of them since the reading before
	Average  float64 `json:"average"` // processes that ran or waited over the last minute
	Hertz    int64   `json:"hertz"`   // of the fastest one
	MaxHertz int64   `json:"max_hertz"`
	Governor string  `json:"governor,omitempty"` // of the first one
}

// EMC is a Jetson's memory controller; only root may read it on most releases.
type EMC struct {
	Load     float64 `json:"load"` // percent
	Hertz    int64   `json:"hertz"`
	MaxHertz int64   `json:"max_hertz"`
}

// Disk is the file system that the reader was pointed at, in bytes.
type Disk struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"` // for a user without privileges
}

// Hottest is the sensor that is nearest to its limit, or the hottest one where none has a limit; nil without sensors. fallback is the limit
// of sensors that name none, 0 to leave those out.
func (r *Reading) Hottest(fallback float64) *Temperature {
	var worst *Temperature
	limit := func(t *Temperature) float64 {
		if t.Limit == 0 {
			return fallback
		}
		return t.Limit
	}
	for i := range r.Temperatures {
		t := &r.Temperatures[i]
		switch {
		case limit(t) == 0:
		case worst == nil, t.Celsius-limit(t) > worst.Celsius-limit(worst):
			worst = t
		}
	}
	return worst
}
