package outputs

import (
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// statsPayload returns the payload of the stats topic, of a State with the rates and stages of the last interval.
func statsPayload(s *state.State) *payload.Stats {
	message := &payload.Stats{Started: s.Started, Engine: s.Inference}
	for i := range s.Cameras {
		camera, recent := &s.Cameras[i].Capture, s.Cameras[i].Recent
		if recent == nil {
			continue
		}
		message.Cameras = append(message.Cameras, payload.CameraStats{
			Name: camera.Name, Captured: camera.FPS, Inferred: recent.FPS, DroppedMotion: recent.DroppedMotionFPS,
			DroppedNewer:   max(0, camera.FPS-recent.FPS-recent.DroppedMotionFPS),
			DeadlineMissed: recent.DeadlineMissed + recent.DroppedDeadline, Slowdown: recent.Slowdown,
			LatencyP50: recent.P50, LatencyP99: recent.P99,
		})
	}
	for _, n := range s.Secondary {
		message.Secondary = append(message.Secondary, payload.SecondaryStats{
			Name: n.Name, Crops: n.Crops, Failed: n.Failed, Missed: n.Missed, Hangs: n.Hangs, Slow: n.Slow, Last: n.Last,
		})
	}
	for _, t := range s.RecentStages {
		message.Stages = append(message.Stages, payload.StageStats{Name: t.Stage.String(), P50: t.P50, P99: t.P99, P999: t.P999, Max: t.Max})
	}
	measure(s.Sensors, message)
	return message
}

// cameraTotals counts one camera's frames over the whole run.
type cameraTotals struct {
	pipeline.CameraStats
	Hardware   string `json:"hardware"`        // that the network runs on
	Model      string `json:"model,omitempty"` // where not all cameras have the same
	Captured   uint64 `json:"captured"`
	Dropped    uint64 `json:"dropped_newer"`
	Damaged    uint64 `json:"damaged"`
	Reconnects uint64 `json:"reconnects"`
	// State at the end of the run.
	State   capture.State `json:"state"`
	Since   time.Time     `json:"since,omitzero"`
	Reason  string        `json:"reason,omitempty"`
	Last    time.Time     `json:"last,omitzero"`
	NextTry time.Time     `json:"next_try,omitzero"`
	Tries   uint64        `json:"tries"`

	P50  float64 `json:"latency_p50_ms"`
	P99  float64 `json:"latency_p99_ms"`
	P999 float64 `json:"latency_p999_ms"`
	Max  float64 `json:"latency_max_ms"`
}

// totals returns the counters of the whole run.
func totals(s *state.State, now time.Time) map[string]any {
	var cameras []cameraTotals
	for i := range s.Cameras {
		c := &s.Cameras[i]
		camera, counted := &c.Capture, &c.Totals
		if counted.Camera == "" {
			continue // the frame loop does not have it yet
		}
		cameras = append(cameras, cameraTotals{
			CameraStats: *counted, Hardware: c.Hardware, Model: c.ModelText, Captured: camera.Captured, Dropped: camera.Dropped,
			Damaged: camera.Damaged, Reconnects: camera.Reconnects, State: camera.State, Since: camera.Since, Reason: camera.Reason,
			Last: camera.LastImage, NextTry: camera.NextTry, Tries: camera.Tries, P50: milliseconds(counted.P50), P99: milliseconds(counted.P99),
			P999: milliseconds(counted.P999), Max: milliseconds(counted.Max),
		})
	}
	all := map[string]any{
		"cameras": cameras, "seconds": now.Sub(s.Started).Seconds(), "first_frame_ms": milliseconds(s.FirstFrame),
		"backend": s.Model.Backend, "lines_dropped": s.Outputs.LinesDropped,
	}
	if s.Secondary != nil {
		all["secondary"] = shownSecondary(s.Secondary)
	}
	if s.Outputs.MQTT != nil {
		all["mqtt"] = s.Outputs.MQTT.Accounting
	}
	return all
}

// summary returns the counters of the whole run for a person.
func summary(s *state.State, now time.Time) *report.Summary {
	all := &report.Summary{Elapsed: now.Sub(s.Started), Messages: messages(s)}
	for i := range s.Cameras {
		c := &s.Cameras[i]
		if c.Totals.Camera != "" {
			all.Cameras = append(all.Cameras, report.CameraSummary{
				CameraStats: c.Totals, DroppedNewer: c.Capture.Dropped, Damaged: c.Capture.Damaged,
			})
		}
	}
	return all
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
