package pipeline

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/edge-infer/edge-infer/capture"
)

// Latencies are recorded in microseconds from 1 us to a minute with three significant digits.
const (
	lowestLatency  = 1
	highestLatency = 60_000_000
	latencyDigits  = 3
)

// meter counts what one camera gave and how long its frames took. The frame goroutine writes, anyone reads.
type meter struct {
	mutex      sync.Mutex
	inferred   uint64
	missed     uint64 // of inferred, results older than the deadline
	interval   uint64 // dropped, each with its reason
	motion     uint64
	deadline   uint64
	failed     uint64
	err        error // of the newest frame; nil after a frame was inferred
	detections uint64
	cut        uint64                  // of inferred, see CameraStats.Cut
	latency    *hdrhistogram.Histogram // since the start
	recent     *hdrhistogram.Histogram // since the last Stats
	buckets    Histogram               // since the start
	started    time.Time
	since      time.Time // of the last Stats
	base       uint64    // inferred at since
	baseMotion uint64    // motion at since
	newest     int64     // when the newest frame came newest, or the camera came; CLOCK_MONOTONIC
}

func newMeter() *meter {
	now := time.Now()
	return &meter{
		latency: hdrhistogram.New(lowestLatency, highestLatency, latencyDigits),
		recent:  hdrhistogram.New(lowestLatency, highestLatency, latencyDigits),
		started: now,
		since:   now,
		newest:  capture.Monotonic(),
	}
}

func (m *meter) frame(latency time.Duration, detections int, tooLate, cut bool) {
	microseconds := min(max(latency.Microseconds(), lowestLatency), highestLatency)
	m.mutex.Lock()
	m.inferred++
	m.err = nil
	if tooLate {
		m.missed++
	}
	if cut {
		m.cut++
	}
	m.newest = capture.Monotonic()
	m.detections += uint64(detections)
	_ = m.latency.RecordValue(microseconds)
	_ = m.recent.RecordValue(microseconds)
	m.buckets.add(latency)
	m.mutex.Unlock()
}

// drop counts a frame that the predictor did not get.
func (m *meter) drop(why decision) {
	m.mutex.Lock()
	switch why {
	case dropMotion:
		m.motion++
	case dropDeadline:
		m.deadline++
	default:
		m.interval++
	}
	m.newest = capture.Monotonic()
	m.mutex.Unlock()
}

// fail counts a frame that was dropped because of an error.
func (m *meter) fail(err error) {
	m.mutex.Lock()
	m.failed++
	m.err = err
	m.mutex.Unlock()
}

// reason returns the text of err. The lock is held.
func (m *meter) reason() string {
	if m.err == nil {
		return ""
	}
	return m.err.Error()
}

// CameraStats counts one camera's frames. Each frame is either inferred or dropped for one reason. Counters run from the start; FPS, P50
// and P99 cover the time since the previous call of Pipeline.Stats, or the whole run for Pipeline.Totals.
type CameraStats struct {
	Camera           string        `json:"camera"`
	Inferred         uint64        `json:"inferred"`
	DeadlineMissed   uint64        `json:"deadline_missed"`  // of Inferred, results older than the camera's deadline
	DroppedInterval  uint64        `json:"dropped_interval"` // not due by the camera's interval or rate
	DroppedMotion    uint64        `json:"dropped_motion"`   // nothing moved
	DroppedDeadline  uint64        `json:"dropped_deadline"` // older than the camera's deadline before inference
	DroppedError     uint64        `json:"dropped_error"`    // an engine error
	Detections       uint64        `json:"detections"`
	Cut              uint64        `json:"cut"` // of Inferred, frames with more detections than the limit, which were left out
	FPS              float64       `json:"fps"`
	DroppedMotionFPS float64       `json:"-"` // frames per second, since the previous call of Pipeline.Stats
	P50              time.Duration `json:"-"`
	P99              time.Duration `json:"-"`
	P999             time.Duration `json:"-"`
	Max              time.Duration `json:"-"`
	Latency          Histogram     `json:"-"` // of the whole run
	// Slowdown multiplies the time between two frames of the camera now; 1 at full speed.
	Slowdown int `json:"slowdown"`
	// Error is why the newest frame gave no result; empty after one that did.
	Error string `json:"error,omitempty"`
	// NetworkFailed is set while the camera's network is at fault and not used.
	NetworkFailed bool `json:"network_failed,omitempty"`
	// Idle is how long ago the newest frame came newest, or the camera came.
	Idle time.Duration `json:"-"`
}

func (m *meter) snapshot(name string, now time.Time) CameraStats {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	stats := m.read(name, m.recent, m.inferred-m.base, now.Sub(m.since))
	m.recent.Reset()
	stats.DroppedMotionFPS = float64(m.motion-m.baseMotion) / max(now.Sub(m.since).Seconds(), 1e-9)
	m.base, m.baseMotion, m.since = m.inferred, m.motion, now
	return stats
}

func (m *meter) total(name string) CameraStats {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.read(name, m.latency, m.inferred, time.Since(m.started))
}

func (m *meter) read(name string, histogram *hdrhistogram.Histogram, frames uint64, elapsed time.Duration) CameraStats {
	at := func(quantile float64) time.Duration {
		return time.Duration(histogram.ValueAtQuantile(quantile)) * time.Microsecond
	}
	return CameraStats{
		Camera: name, Error: m.reason(), Inferred: m.inferred, DeadlineMissed: m.missed, DroppedInterval: m.interval, DroppedMotion: m.motion,
		DroppedDeadline: m.deadline, DroppedError: m.failed, Detections: m.detections, Cut: m.cut,
		FPS: float64(frames) / max(elapsed.Seconds(), 1e-9), Latency: m.buckets,
		P50: at(50), P99: at(99), P999: at(99.9), Max: time.Duration(histogram.Max()) * time.Microsecond,
		Idle: time.Duration(capture.Monotonic() - m.newest),
	}
}

// Stats returns the counters of each camera, with rates since the previous call.
func (c *cameraSet) Stats() []CameraStats {
	now := time.Now()
	streams := *c.streams.Load()
	stats := make([]CameraStats, len(streams))
	for i, camera := range streams {
		stats[i] = camera.meter.snapshot(camera.Name, now)
		stats[i].Slowdown = c.slowed(camera)
	}
	return stats
}

// Totals returns the counters of each camera since it was added.
func (c *cameraSet) Totals() []CameraStats {
	streams := *c.streams.Load()
	stats := make([]CameraStats, len(streams))
	for i, camera := range streams {
		stats[i] = camera.meter.total(camera.Name)
		stats[i].Slowdown = c.slowed(camera)
	}
	return stats
}

// slowed returns the factor applied to the time between two frames of a camera, because of heat or of cameras with a deadline.
func (c *cameraSet) slowed(camera *stream) int {
	factor := int(max(c.slowdown.Load(), 1))
	if camera.Deadline == 0 {
		factor *= int(max(c.relief.Load(), 1))
	}
	return factor
}
