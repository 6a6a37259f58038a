package web

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/capture"
)

// Clips is the state of recording. Counters run from the start.
type Clips struct {
	Error      string        `json:"error,omitempty"` // why nothing is recorded; empty if all is well
	Clips      int           `json:"clips"`           // on the disk
	Bytes      int64         `json:"bytes"`
	MaxBytes   int64         `json:"max_bytes"`
	Recorded   uint64        `json:"recorded"`
	Failures   uint64        `json:"failures"`   // of the disk
	Missed     uint64        `json:"missed"`     // events without a clip
	Suppressed uint64        `json:"suppressed"` // events within the cool-down
	Cameras    []CameraClips `json:"cameras"`

	// SlowestWrite is the longest time that a second of video took to the disk.
	SlowestWrite time.Duration `json:"-"`
}

// CameraClips is the state of recording a camera.
type CameraClips struct {
	Camera    string `json:"camera"`
	Recording bool   `json:"recording"`
	Error     string `json:"error,omitempty"` // why the last clip could not be recorded
	Skipped   uint64 `json:"skipped"`         // access units missing in clips because the disk was too slow
}

// forClips calls read if clips are recorded.
func forClips(read func(*Clips) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		if status.Clips != nil {
			emit(read(status.Clips))
		}
	}
}

// clipMetrics returns the metrics of recording in the order of METRICS.md.
func clipMetrics() []daemonMetric {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	metric := func(name, help string, kind prometheus.ValueType, read func(*Server, *Status, emit), labels ...string) daemonMetric {
		return daemonMetric{prometheus.NewDesc("edge_infer_"+name, help, labels, nil), kind, read}
	}
	return []daemonMetric{
		metric("clips", "Clips on the disk.", gauge, forClips(func(c *Clips) float64 { return float64(c.Clips) })),
		metric("clip_bytes", "Size of all clips, open ones included.", gauge, forClips(func(c *Clips) float64 { return float64(c.Bytes) })),
		metric("clips_recorded_total", "Clips recorded.", counter, forClips(func(c *Clips) float64 { return float64(c.Recorded) })),
		metric("clip_failures_total", "Errors of the disk or of the event store while recording.", counter,
			forClips(func(c *Clips) float64 { return float64(c.Failures) })),
		metric("clip_events_missed_total", "Events without a clip.", counter, forClips(func(c *Clips) float64 { return float64(c.Missed) })),
		metric("clip_write_max_seconds", "Longest write of a second of video.", gauge,
			forClips(func(c *Clips) float64 { return c.SlowestWrite.Seconds() })),
		metric("clip_recording", "1 while a clip of the camera is recorded.", gauge, func(_ *Server, status *Status, emit emit) {
			if status.Clips != nil {
				for i := range status.Clips.Cameras {
					emit(boolToFloat(status.Clips.Cameras[i].Recording), status.Clips.Cameras[i].Camera)
				}
			}
		}, "camera"),
		metric("record_received", "1 while the stream of the camera's setting record is received.", gauge,
			forCameras(func(c *capture.Stats, emit emit) {
				if c.Record != nil {
					emit(boolToFloat(c.Record.State == capture.Running), c.Name)
				}
			}), "camera"),
	}
}
