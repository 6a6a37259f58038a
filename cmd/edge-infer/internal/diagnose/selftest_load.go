package diagnose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// sampleInterval is the time between two readings of the sensors under load.
const sampleInterval = time.Second

// extremes are the worst readings of the sensors under load.
type extremes struct {
	available    int64 // least memory, bytes; 0 before the first reading
	celsius      float64
	sensor       string // that was the hottest
	slowest      int64  // clock of the first GPU, hertz
	fastest      int64
	first, last  int64    // over-current events
	throttled    []string // causes
	readings     int
	total        int64 // memory of the machine
	watts        float64
	highestWatts string // rail
	held         int64  // most memory that the GPU holds, bytes; on a Jetson with what video engines and cameras hold
	fan          float64
}

// add takes a reading over.
func (e *extremes) add(r *telemetry.Reading) {
	if e.readings == 0 {
		e.available, e.first = r.Memory.Available, r.OverCurrents
	}
	e.readings++
	e.total = r.Memory.Total
	e.available = min(e.available, r.Memory.Available)
	e.last = r.OverCurrents
	for _, t := range r.Temperatures {
		if t.Celsius > e.celsius {
			e.celsius, e.sensor = t.Celsius, t.Name
		}
	}
	for _, rail := range r.Rails {
		if rail.Watts > e.watts {
			e.watts, e.highestWatts = rail.Watts, rail.Name
		}
	}
	e.held = max(e.held, r.Memory.NvMap)
	for i := range r.GPUs[:min(1, len(r.GPUs))] {
		e.held = max(e.held, r.GPUs[i].MemoryUsed)
	}
	for _, f := range r.Fans {
		e.fan = max(e.fan, f.Duty)
	}
	if len(r.GPUs) > 0 && r.GPUs[0].Hertz > 0 {
		hertz := r.GPUs[0].Hertz
		if e.slowest == 0 {
			e.slowest = hertz
		}
		e.slowest, e.fastest = min(e.slowest, hertz), max(e.fastest, hertz)
	}
	for _, s := range r.Throttled {
		if cause := fmt.Sprintf("%s: %s", s.Part, s.Cause); !slices.Contains(e.throttled, cause) {
			e.throttled = append(e.throttled, cause)
		}
	}
}

// String describes the readings.
func (e *extremes) String() string {
	const mebibyte = 1 << 20
	parts := []string{fmt.Sprintf("least memory available %d of %d MiB", e.available/mebibyte, e.total/mebibyte)}
	if e.held > 0 {
		parts = append(parts, fmt.Sprintf("GPU memory %d MiB at most", e.held/mebibyte))
	}
	if e.fastest > 0 {
		parts = append(parts, fmt.Sprintf("GPU clock %d to %d MHz", e.slowest/1e6, e.fastest/1e6))
	}
	if e.sensor != "" {
		parts = append(parts, fmt.Sprintf("%s %.0f degrees Celsius at most", e.sensor, e.celsius))
	}
	if e.highestWatts != "" {
		parts = append(parts, fmt.Sprintf("%s %.1f W at most", e.highestWatts, e.watts))
	}
	if e.fan > 0 {
		parts = append(parts, fmt.Sprintf("fan %.0f %% at most", e.fan))
	}
	throttled := "not throttled"
	if len(e.throttled) > 0 {
		throttled = "throttled by " + strings.Join(e.throttled, ", ")
	}
	parts = append(parts, throttled)
	if n := e.last - e.first; n > 0 {
		parts = append(parts, fmt.Sprintf("%d over-current events", n))
	}
	return strings.Join(parts, "; ")
}

// load runs the network with the backend that the daemon would use for r.Load, without pauses, and reports what the sensors show meanwhile.
func (r *request) load(ctx context.Context) (detail string, err error) {
	images, err := demoImages()
	if err != nil {
		return "", err
	}
	n, err := predict.Open(ctx, r.options(r.Engine.Backend, r.Engine.Precision))
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	reader := &telemetry.Reader{}
	defer reader.Close()
	var worst extremes
	worst.add(reader.Read())
	begun := time.Now()
	next := begun.Add(sampleInterval)
	done := 0
	for time.Since(begun) < r.Load {
		if _, _, err := detectAll(n, images); err != nil {
			return "", err
		}
		done += len(images)
		if now := time.Now(); now.After(next) {
			worst.add(reader.Read())
			r.note(fmt.Sprintf("load, %v of %v", now.Sub(begun).Round(time.Second), r.Load))
			next = now.Add(sampleInterval)
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
	took := time.Since(begun)
	worst.add(reader.Read())
	m := n.Model()
	return fmt.Sprintf("%s on %s, %s: %.1f images a second for %v; %s", m.Backend, nameOf(&m), m.Precision, float64(done)/took.Seconds(),
		took.Round(time.Second), worst.String()), nil
}

// nameOf returns the name of the device that a network runs on.
func nameOf(m *predict.Model) string {
	if m.Device == "" {
		return "the CPU"
	}
	return m.Device
}
