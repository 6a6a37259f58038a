package convert

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/cpu"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// TargetAuto selects the target of this machine.
const TargetAuto = "auto"

// target returns the runtime that the INT8 model is for.
func (q *Quantize) target() quantize.Target {
	switch {
	case q.Target != TargetAuto && q.Target != "":
		return quantize.Target(q.Target)
	case q.CalibrationTable != "":
		return quantize.TensorRT
	}
	if _, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{}); err == nil {
		return quantize.TensorRT
	}
	return quantize.ONNXRuntime
}

// bitsText explains which other CPUs the weights' number of bits suits.
func bitsText() string {
	switch {
	case runtime.GOARCH != "amd64":
		return ""
	case hasVNNI():
		return "weights have 8 bits; for CPUs without VNNI, run quantize on one: 8-bit products overflow there\n"
	}
	return "weights have 7 bits, because this CPU has no VNNI\n"
}

// hasVNNI reports whether products of 8 bits are summed without saturation in between.
func hasVNNI() bool {
	return runtime.GOARCH != "amd64" || cpu.X86.HasAVX512VNNI || cpu.X86.HasAVXVNNI
}

// Speed compares the time of the network for one image on this CPU.
type Speed struct {
	FP32 time.Duration `json:"fp32_ns"` // median
	INT8 time.Duration `json:"int8_ns"`
}

// Ratio returns how many times faster INT8 is.
func (s *Speed) Ratio() float64 { return float64(s.FP32) / float64(s.INT8) }

// worthwhile is the ratio from which INT8 is worth its loss of accuracy; less is within the noise of the measurement.
const worthwhile = 1.05

// String returns the comparison in one line, with advice if INT8 is not faster.
func (s *Speed) String() string {
	text := fmt.Sprintf("%.1f ms per image in INT8, %.1f ms in FP32: %.2f times as fast on this CPU",
		milliseconds(s.INT8), milliseconds(s.FP32), s.Ratio())
	if s.Ratio() < worthwhile {
		text += " (INT8 gains nothing here: use the FP32 model)"
	}
	return text
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Runs of compareSpeed.
const (
	speedWarmup = 3
	speedRuns   = 40
	speedTime   = 10 * time.Second // no further run after it
)

// compareSpeed runs both models in turns on this CPU; nil for models that take no images.
func (c *conversion) compareSpeed(ctx context.Context, fp32, int8Model []byte) (*Speed, error) {
	reference, err := c.open(1)(fp32)
	if err != nil {
		return nil, err
	}
	defer reference.Close()
	candidate, err := c.open(1)(int8Model)
	if err != nil {
		return nil, err
	}
	defer candidate.Close()
	m := reference.Model()
	if m.Width == 0 {
		return nil, nil
	}
	gray := engine.Image{Data: make([]byte, 3*m.Width*m.Height), Width: m.Width, Height: m.Height, Stride: 3 * m.Width, Format: engine.BGR}
	var times [2][]time.Duration
	for run, begin := 0, time.Now(); run < speedWarmup+speedRuns && (run <= speedWarmup || time.Since(begin) < speedTime); run++ {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("compare speed: %w", err)
		}
		for i, model := range [...]quantize.Runner{reference, candidate} {
			result, err := model.Images(gray)
			if err != nil {
				return nil, fmt.Errorf("compare speed: %w", err)
			}
			if run >= speedWarmup {
				times[i] = append(times[i], time.Duration(result.Timing.Inference))
			}
		}
	}
	return &Speed{FP32: median(times[0]), INT8: median(times[1])}, nil
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
