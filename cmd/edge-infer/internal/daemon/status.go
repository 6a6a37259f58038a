package daemon

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// status returns the payload of the status topic.
func (o *outputs) status() *payload.Status {
	model := o.groups.Model()
	status := &payload.Status{
		Version: o.version, Started: o.started, Backend: model.Backend, Reason: model.Reason, Hardware: model.Device, Model: model.Path,
		Head: model.Recognised.String(), Precision: string(model.Precision), Accuracy: accuracyStatus(o.verdict()),
		Runtime: payload.Runtime{
			Processors: o.process.Processors, GC: o.process.GC, MemoryLimit: o.process.MemoryLimit, Capture: o.process.Capture.State(),
		},
	}
	if text, failed := o.upgrade(); failed {
		status.Reason += "; " + text
	}
	status.Reason += o.groups.Servers().Trouble()
	status.Reason += secondaryTrouble(o.secondary())
	if o.store != nil {
		if problem := o.store.Stats().Error; problem != "" {
			status.Reason += "; events are not stored: " + problem
		}
	}
	if o.client != nil {
		if other := o.client.Connection().Conflict; other != "" {
			status.Reason += "; another machine has the same name: " + other
		}
	}
	status.Reason += o.clipTrouble() + o.webhookTrouble() + o.uploadTrouble()
	if last := o.reloaded(); last != nil && last.err != nil {
		status.ConfigurationError = last.err.Error()
	}
	now := o.site()
	for _, c := range o.cameras.All() {
		stats := c.Capture.Stats()
		camera := payload.CameraStatus{
			Name: stats.Name, State: string(stats.State), Error: stats.Reason, Hardware: o.groups.Hardware(stats.Name), Since: stats.Since,
			Slowdown: o.groups.Slowdown(stats.Name), Model: o.groups.Describe(stats.Name), RecordError: stats.Record.Problem(),
		}
		if settings, ok := o.groups.Settings(stats.Name); ok && settings.Classes != nil && len(settings.Classes) == 0 && camera.Error == "" {
			if inForce := now.Camera(stats.Name); inForce != nil {
				camera.Error = noClasses(inForce)
			}
		}
		if camera.Error == "" {
			camera.Error = o.groups.LastError(stats.Name)
		}
		if stats.State != capture.Running {
			camera.Last, camera.NextTry, camera.Tries = stats.LastImage, stats.NextTry, stats.Tries
		}
		status.Cameras = append(status.Cameras, camera)
	}
	return status
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

// publishStats publishes the stats of the last interval.
func (o *outputs) publishStats(stats []pipeline.CameraStats) {
	if o.client == nil {
		return
	}
	message := &payload.Stats{Started: o.started, Engine: o.groups.InferenceTime()}
	for i := range stats {
		camera := o.cameras.Captured(stats[i].Camera)
		message.Cameras = append(message.Cameras, payload.CameraStats{
			Name: camera.Name, Captured: camera.FPS, Inferred: stats[i].FPS, DroppedMotion: stats[i].DroppedMotionFPS,
			DroppedNewer:   max(0, camera.FPS-stats[i].FPS-stats[i].DroppedMotionFPS),
			DeadlineMissed: stats[i].DeadlineMissed + stats[i].DroppedDeadline, Slowdown: stats[i].Slowdown,
			LatencyP50: stats[i].P50, LatencyP99: stats[i].P99,
		})
	}
	for _, s := range o.secondary() {
		message.Secondary = append(message.Secondary, payload.SecondaryStats{
			Name: s.Name, Crops: s.Crops, Failed: s.Failed, Missed: s.Missed, Hangs: s.Hangs, Slow: s.Slow, Last: s.Last,
		})
	}
	for _, s := range o.stages.Recent() {
		message.Stages = append(message.Stages, payload.StageStats{Name: s.Stage.String(), P50: s.P50, P99: s.P99, P999: s.P999, Max: s.Max})
	}
	measure(o.sensorReadings(), message)
	o.client.Stats(message)
}

// statusLine is how the run is, for a person.
func (o *outputs) statusLine(stats []pipeline.CameraStats) string {
	var line strings.Builder
	var fps float64
	var p50, p99 time.Duration
	var dropped uint64
	for i := range stats {
		fps += stats[i].FPS
		p50, p99 = max(p50, stats[i].P50), max(p99, stats[i].P99)
		camera := o.cameras.Captured(stats[i].Camera)
		dropped += camera.Dropped
		if camera.State != capture.Running {
			fmt.Fprintf(&line, "%s %s  ", camera.Name, camera.State)
		}
	}
	if last := o.reloaded(); last != nil && last.err != nil {
		line.WriteString("configuration kept as it was  ")
	}
	if o.intervalFactor() > 1 {
		fmt.Fprintf(&line, "cooling down: %d times the interval  ", o.intervalFactor())
	}
	fmt.Fprintf(&line, "%.1f fps  latency p50 %.1f ms p99 %.1f ms  dropped %d (newer)  ", fps, milliseconds(p50), milliseconds(p99), dropped)
	if text, _ := o.upgrade(); text != "" {
		line.WriteString(text + "  ")
	}
	line.WriteString("mqtt " + broker.State(o.client))
	return line.String()
}

// state returns the state of the run for the terminal; text is the same in one line.
func (o *outputs) state(stats []pipeline.CameraStats, text string) *report.State {
	m := o.groups.Model()
	s := &report.State{
		Line: text, Title: fmt.Sprintf("%s: %s on %s, %s", o.device, m.Path, m.Backend, m.Precision), Elapsed: time.Since(o.started),
		Broker: broker.State(o.client), Connected: true,
	}
	for i := range stats {
		s.Cameras = append(s.Cameras, report.CameraState{CameraStats: stats[i], Capture: o.cameras.Captured(stats[i].Camera)})
	}
	if last := o.reloaded(); last != nil && last.err != nil {
		s.Notes = append(s.Notes, "the configuration is kept as it was: "+last.err.Error())
	}
	if o.intervalFactor() > 1 {
		s.Notes = append(s.Notes, fmt.Sprintf("cooling down: %d times the interval", o.intervalFactor()))
	}
	if doing, _ := o.upgrade(); doing != "" {
		s.Notes = append(s.Notes, doing)
	}
	if o.client != nil {
		s.Connected = o.client.Connection().Connected
		s.Messages = o.messages()
	}
	if o.web != nil {
		s.Page = o.web.URL()
	}
	return s
}

// messages returns the message counters.
func (o *outputs) messages() *report.Messages {
	events, all := o.client.Accounting().Sum()
	return &report.Messages{Events: events.Offered, Delivered: all.Delivered, Dropped: all.Dropped, Waiting: all.Queued}
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

// inOrder sorts counters by the configured order of the cameras; without that they are in the order of the networks.
func (o *outputs) inOrder(stats []pipeline.CameraStats) []pipeline.CameraStats {
	position := map[string]int{}
	for i, c := range o.cameras.All() {
		position[c.Site.Name] = i
	}
	slices.SortStableFunc(stats, func(a, b pipeline.CameraStats) int { return cmp.Compare(position[a.Camera], position[b.Camera]) })
	return stats
}

// totals returns the counters of the whole run.
func (o *outputs) totals() map[string]any {
	var cameras []cameraTotals
	for _, totals := range o.inOrder(o.groups.Totals()) {
		camera := o.cameras.Last(totals.Camera)
		cameras = append(cameras, cameraTotals{
			CameraStats: totals, Hardware: o.groups.Hardware(totals.Camera), Model: o.groups.Describe(totals.Camera),
			Captured: camera.Captured, Dropped: camera.Dropped,
			Damaged: camera.Damaged, Reconnects: camera.Reconnects, State: camera.State, Since: camera.Since, Reason: camera.Reason,
			Last: camera.LastImage, NextTry: camera.NextTry, Tries: camera.Tries, P50: milliseconds(totals.P50), P99: milliseconds(totals.P99),
			P999: milliseconds(totals.P999),
			Max:  milliseconds(totals.Max),
		})
	}
	all := map[string]any{
		"cameras": cameras, "seconds": time.Since(o.started).Seconds(), "first_frame_ms": milliseconds(o.groups.FirstFrame()),
		"backend": o.groups.Model().Backend, "lines_dropped": o.lines.Dropped(),
	}
	if secondary := o.secondary(); secondary != nil {
		all["secondary"] = shownSecondary(secondary)
	}
	if o.client != nil {
		all["mqtt"] = o.client.Accounting()
	}
	return all
}

// summarise writes totals for a person.
func (o *outputs) summarise() error {
	s := report.Summary{Elapsed: time.Since(o.started)}
	for _, totals := range o.inOrder(o.groups.Totals()) {
		camera := o.cameras.Last(totals.Camera)
		s.Cameras = append(s.Cameras, report.CameraSummary{CameraStats: totals, DroppedNewer: camera.Dropped, Damaged: camera.Damaged})
	}
	if o.client != nil {
		s.Messages = o.messages()
	}
	return s.Print(o.out)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// publishStatus publishes the status if it differs from the previous one.
func (o *outputs) publishStatus(before string) (now string) {
	client := o.client
	if client == nil {
		return before
	}
	status := o.status()
	now = fmt.Sprint(status.Cameras, status.Backend, status.Reason, status.Accuracy != nil, status.ConfigurationError,
		client.Health().Oversize.Messages)
	if now != before {
		client.Status(status)
	}
	return now
}
