package daemon

import (
	"fmt"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// status is what the broker is told of the run.
func (r *run) status() *payload.Status {
	model := r.devices.Model()
	status := &payload.Status{
		Version: r.Version, Started: r.started, Backend: model.Backend, Reason: model.Reason, Hardware: model.Device, Model: model.Path,
		Head: model.Recognised.String(), Precision: string(model.Precision), Accuracy: accuracyStatus(r.verdict.Load()),
		Runtime: payload.Runtime{
			Processors: r.process.Processors, GC: r.process.GC, MemoryLimit: r.process.MemoryLimit, Capture: r.process.Capture.State(),
		},
	}
	if text, failed := r.upgrade.Doing(); failed {
		status.Reason += "; " + text
	}
	status.Reason += r.devices.Servers().Trouble()
	if last := r.reloaded.Load(); last != nil && last.err != nil {
		status.ConfigurationError = last.err.Error()
	}
	now, _ := r.current()
	for _, c := range r.cameras.All() {
		stats := c.Capture.Stats()
		camera := payload.CameraStatus{
			Name: stats.Name, State: string(stats.State), Error: stats.Reason, Hardware: r.devices.Hardware(stats.Name), Since: stats.Since,
			Slowdown: r.devices.Slowdown(stats.Name), Model: r.devices.Describe(stats.Name),
		}
		if settings, ok := r.devices.Settings(stats.Name); ok && settings.Classes != nil && len(settings.Classes) == 0 && camera.Error == "" {
			if inForce := now.Camera(stats.Name); inForce != nil {
				camera.Error = noClasses(inForce)
			}
		}
		if stats.State != capture.Running {
			camera.Last, camera.NextTry, camera.Tries = stats.LastImage, stats.NextTry, stats.Tries
		}
		status.Cameras = append(status.Cameras, camera)
	}
	return status
}

// judged notes what the gate has found about the model that runs from now on.
func (r *run) judged(model engine.Model) {
	v, err := accuracy.VerdictOn(model)
	if err != nil {
		r.logger.Warn("accuracy not known", "error", err)
	}
	r.verdict.Store(v)
}

// accuracyStatus is the MQTT status' form of a verdict.
func accuracyStatus(v *quantize.Verdict) *payload.Accuracy {
	if v == nil {
		return nil
	}
	c := &v.Comparison
	a := &payload.Accuracy{
		Precision: string(v.Precision), Passed: v.Passed, MatchRate: c.MatchRate, Boxes: c.Reference, Flipped: c.Flipped, Images: c.Images,
		Time: v.Time,
	}
	if c.ReferenceAccuracy != nil && c.CandidateAccuracy != nil {
		a.Labelled, a.MAP50, a.MAP = true, c.CandidateAccuracy.MAP50, c.CandidateAccuracy.MAP
		a.ReferenceMAP50, a.ReferenceMAP = c.ReferenceAccuracy.MAP50, c.ReferenceAccuracy.MAP
	}
	for _, refused := range v.Refused {
		a.Refused = append(a.Refused, payload.RefusedPrecision{Precision: string(refused.Precision), Reasons: refused.Reasons})
	}
	return a
}

// publishStats tells the broker how the last interval was.
func (r *run) publishStats(stats []pipeline.CameraStats) {
	if r.outputs.client == nil {
		return
	}
	message := &payload.Stats{Started: r.started, Engine: r.devices.InferenceTime()}
	for i := range stats {
		camera := r.cameras.Captured(stats[i].Camera)
		message.Cameras = append(message.Cameras, payload.CameraStats{
			Name: camera.Name, Captured: camera.FPS, Inferred: stats[i].FPS, Displaced: max(0, camera.FPS-stats[i].FPS-stats[i].DroppedMotionFPS),
			Gated: stats[i].DroppedMotionFPS, Late: stats[i].DroppedDeadline, Slowdown: stats[i].Slowdown,
			LatencyP50: stats[i].P50, LatencyP99: stats[i].P99,
		})
	}
	for _, s := range r.devices.Stages.Recent() {
		message.Stages = append(message.Stages, payload.StageStats{Name: s.Stage.String(), P50: s.P50, P99: s.P99, P999: s.P999, Max: s.Max})
	}
	measure(r.monitor.Latest(), message)
	r.outputs.client.Stats(message)
}

// statusLine is how the run is, for a person.
func (r *run) statusLine(stats []pipeline.CameraStats) string {
	var line strings.Builder
	var fps float64
	var p50, p99 time.Duration
	var displaced uint64
	for i := range stats {
		fps += stats[i].FPS
		p50, p99 = max(p50, stats[i].P50), max(p99, stats[i].P99)
		camera := r.cameras.Captured(stats[i].Camera)
		displaced += camera.Dropped
		if camera.State != capture.Running {
			fmt.Fprintf(&line, "%s %s  ", camera.Name, camera.State)
		}
	}
	if last := r.reloaded.Load(); last != nil && last.err != nil {
		line.WriteString("configuration kept as it was  ")
	}
	if r.throttle.factor > 1 {
		fmt.Fprintf(&line, "cooling down: %d times the interval  ", r.throttle.factor)
	}
	fmt.Fprintf(&line, "%.1f fps  latency p50 %.1f ms p99 %.1f ms  dropped %d  ", fps, milliseconds(p50), milliseconds(p99), displaced)
	if text, _ := r.upgrade.Doing(); text != "" {
		line.WriteString(text + "  ")
	}
	line.WriteString("mqtt " + broker.State(r.outputs.client))
	return line.String()
}

// state is how the run is, for a person at a terminal; text says the same in one line.
func (r *run) state(stats []pipeline.CameraStats, text string) *report.State {
	m := r.devices.Model()
	s := &report.State{
		Line: text, Title: fmt.Sprintf("%s: %s on %s, %s", r.device, m.Path, m.Backend, m.Precision), Elapsed: time.Since(r.started),
		Broker: broker.State(r.outputs.client), Connected: true,
	}
	for i := range stats {
		s.Cameras = append(s.Cameras, report.CameraState{CameraStats: stats[i], Capture: r.cameras.Captured(stats[i].Camera)})
	}
	if last := r.reloaded.Load(); last != nil && last.err != nil {
		s.Notes = append(s.Notes, "the configuration is kept as it was: "+last.err.Error())
	}
	if r.throttle.factor > 1 {
		s.Notes = append(s.Notes, fmt.Sprintf("cooling down: %d times the interval", r.throttle.factor))
	}
	if doing, _ := r.upgrade.Doing(); doing != "" {
		s.Notes = append(s.Notes, doing)
	}
	if r.outputs.client != nil {
		s.Connected = r.outputs.client.Connection().Connected
		s.Messages = r.messages()
	}
	if r.outputs.web != nil {
		s.Page = r.outputs.web.URL()
	}
	return s
}

// messages is what became of what was to be published.
func (r *run) messages() *report.Messages {
	events, all := r.outputs.client.Accounting().Sum()
	return &report.Messages{Events: events.Offered, Delivered: all.Delivered, Dropped: all.Dropped, Waiting: all.Queued}
}

// cameraTotals is what one camera's frames came to over the whole run.
type cameraTotals struct {
	pipeline.CameraStats
	Hardware   string `json:"hardware"`        // that the network runs on
	Model      string `json:"model,omitempty"` // where not all cameras have the same
	Captured   uint64 `json:"captured"`
	Displaced  uint64 `json:"displaced"`
	Damaged    uint64 `json:"damaged"`
	Reconnects uint64 `json:"reconnects"`
	// As it was when the run came to its end.
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

// totals is what the whole run came to.
func (r *run) totals() map[string]any {
	var cameras []cameraTotals
	for _, totals := range r.devices.Totals() {
		camera := r.cameras.Last(totals.Camera)
		cameras = append(cameras, cameraTotals{
			CameraStats: totals, Hardware: r.devices.Hardware(totals.Camera), Model: r.devices.Describe(totals.Camera),
			Captured: camera.Captured, Displaced: camera.Dropped,
			Damaged: camera.Damaged, Reconnects: camera.Reconnects, State: camera.State, Since: camera.Since, Reason: camera.Reason,
			Last: camera.LastImage, NextTry: camera.NextTry, Tries: camera.Tries, P50: milliseconds(totals.P50), P99: milliseconds(totals.P99),
			P999: milliseconds(totals.P999),
			Max:  milliseconds(totals.Max),
		})
	}
	all := map[string]any{
		"cameras": cameras, "seconds": time.Since(r.started).Seconds(), "first_frame_ms": milliseconds(r.devices.FirstFrame()),
		"backend": r.devices.Model().Backend, "lines_dropped": r.outputs.lines.Dropped(),
	}
	if r.outputs.client != nil {
		all["mqtt"] = r.outputs.client.Accounting()
	}
	return all
}

// summarise writes totals for a person.
func (r *run) summarise() error {
	s := report.Summary{Elapsed: time.Since(r.started)}
	for _, totals := range r.devices.Totals() {
		camera := r.cameras.Last(totals.Camera)
		s.Cameras = append(s.Cameras, report.CameraSummary{CameraStats: totals, DroppedNewer: camera.Dropped, Damaged: camera.Damaged})
	}
	if r.outputs.client != nil {
		s.Messages = r.messages()
	}
	return s.Print(r.out)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
