package cuda

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine"
)

// Report describes the GPU support of this machine.
type Report struct {
	Driver  Driver  `json:"driver"`
	Devices []Facts `json:"devices,omitempty"`
	// Reason is why no GPU can be used, Hint the remedy. Both are empty if one can.
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Jetson is nil on other machines.
	Jetson *Jetson `json:"jetson,omitempty"`
	NVML   NVML    `json:"nvml"`

	err error
}

// Err returns the reason as an *engine.Error of kind engine.ErrUnavailable, or nil if a GPU can be used.
func (r *Report) Err() error { return r.err }

// Prober collects a Report. The zero value examines this machine.
type Prober struct {
	// Root is a prefix for all file paths, for tests.
	Root string
	// NVML is the path of the library; empty for libnvidia-ml.so.1.
	NVML string
}

// Probe examines this machine. It creates no context and takes no device memory; starting the driver takes some 100 ms the first time.
func Probe() Report { return Prober{}.Probe() }

// Probe collects the report.
func (p Prober) Probe() Report {
	var r Report
	r.Driver, r.err = load()
	if r.err == nil {
		r.Devices, r.err = devices()
	}
	if failure := (*engine.Error)(nil); errors.As(r.err, &failure) {
		r.Reason, r.Hint = failure.Message, failure.Hint
	}
	r.Jetson = p.Jetson()
	r.NVML = p.nvml()
	return r
}

func devices() ([]Facts, error) {
	count, err := cu.NumDevices()
	if err != nil {
		return nil, wrap("open", "counting GPUs", err)
	}
	if count == 0 {
		return nil, failure("open", "the driver works", 100)
	}
	all := make([]Facts, 0, count)
	for ordinal := range count {
		device, err := cu.GetDevice(ordinal)
		if err != nil {
			return all, wrap("open", fmt.Sprintf("GPU %d", ordinal), err)
		}
		facts, err := read(device, ordinal)
		if err != nil {
			return all, err
		}
		all = append(all, facts)
	}
	return all, nil
}
