package outputs

import (
	"fmt"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mqttconfig"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
)

// StatusLine returns a one-line summary of a State with the rates of the last interval.
func StatusLine(s *state.State) string {
	var line strings.Builder
	var fps float64
	var p50, p99 time.Duration
	var dropped uint64
	for i := range s.Cameras {
		camera, recent := &s.Cameras[i].Capture, s.Cameras[i].Recent
		if recent == nil {
			continue
		}
		fps += recent.FPS
		p50, p99 = max(p50, recent.P50), max(p99, recent.P99)
		dropped += camera.Dropped
		if camera.State != capture.Running {
			fmt.Fprintf(&line, "%s %s  ", camera.Name, camera.State)
		}
	}
	if s.Reload != nil && s.Reload.Err != nil {
		line.WriteString("configuration kept as it was  ")
	}
	if s.Slowdown > 1 {
		fmt.Fprintf(&line, "cooling down: %d times the interval  ", s.Slowdown)
	}
	fmt.Fprintf(&line, "%.1f fps  latency p50 %.1f ms p99 %.1f ms  dropped %d (newer)  ", fps, milliseconds(p50), milliseconds(p99), dropped)
	if s.Upgrade.Text != "" {
		line.WriteString(s.Upgrade.Text + "  ")
	}
	line.WriteString("mqtt " + brokerState(s))
	return line.String()
}

// brokerState describes the connection to the broker.
func brokerState(s *state.State) string {
	if s.Outputs.MQTT == nil {
		return mqttconfig.State(nil)
	}
	return mqttconfig.State(&s.Outputs.MQTT.Connection)
}

// terminalState returns a State with the rates of the last interval as the terminal shows it.
func terminalState(s *state.State, now time.Time) *report.State {
	shown := &report.State{
		Line: StatusLine(s), Title: fmt.Sprintf("%s: %s on %s, %s", s.Device, s.Model.Path, s.Model.Backend, s.Model.Precision),
		Elapsed: now.Sub(s.Started), Broker: brokerState(s), Connected: s.Outputs.MQTT == nil || s.Outputs.MQTT.Connection.Connected,
		Messages: messages(s), Page: s.Outputs.Page,
	}
	for i := range s.Cameras {
		if c := &s.Cameras[i]; c.Recent != nil {
			shown.Cameras = append(shown.Cameras, report.CameraState{CameraStats: *c.Recent, Capture: c.Capture})
		}
	}
	if s.Reload != nil && s.Reload.Err != nil {
		shown.Notes = append(shown.Notes, "the configuration is kept as it was: "+s.Reload.Err.Error())
	}
	if s.Slowdown > 1 {
		shown.Notes = append(shown.Notes, fmt.Sprintf("cooling down: %d times the interval", s.Slowdown))
	}
	if s.Upgrade.Text != "" {
		shown.Notes = append(shown.Notes, s.Upgrade.Text)
	}
	return shown
}

// messages returns the message counters, nil without MQTT.
func messages(s *state.State) *report.Messages {
	if s.Outputs.MQTT == nil {
		return nil
	}
	events, all := s.Outputs.MQTT.Accounting.Sum()
	return &report.Messages{Events: events.Offered, Delivered: all.Delivered, Dropped: all.Dropped, Waiting: all.Queued}
}
