package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/mqtt"
)

const (
	statusPause = time.Second      // between two looks at the run
	statsPause  = 10 * time.Second // between two stats messages, and status lines where no terminal is
)

// progress says whether each camera's frames advance. It belongs to the goroutine that feeds the watchdog.
type progress map[string]struct {
	frames   uint64 // that the frame loop had seen of the camera at the last look
	advanced int64  // CLOCK_MONOTONIC of the last look that saw more
}

// stillWindow is how long a running camera may go without a frame through the loop before the watchdog is left unfed.
const stillWindow = 10 * time.Second

// watch shows and publishes how the run is until ctx ends.
func (d *daemon) watch(ctx context.Context) {
	d.service.Alive = d.alive
	go func() {
		if err := d.service.Watch(ctx); err != nil {
			d.logger.Warn("watchdog", "error", err)
		}
	}()
	ticker := time.NewTicker(statusPause)
	defer ticker.Stop()
	var published string
	var lines []pipeline.CameraStats
	ready := false
	since := time.Now()
	for {
		if status := d.status(); d.client != nil {
			if key := fmt.Sprint(status.Cameras, status.Backend, status.Reason, status.Accuracy != nil); key != published {
				published = key
				d.client.Status(status)
			}
		}
		if !ready && d.pipeline.FirstFrame() > 0 {
			ready, lines = true, nil // and a status line is due
			_ = d.service.Ready()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		d.cool()
		d.announceSensors()
		live := d.terminal != nil && d.terminal.Live()
		due := time.Since(since) >= statsPause
		if !live && !due && lines != nil {
			continue
		}
		lines = d.pipeline.Stats()
		text := d.statusLine(lines)
		if d.terminal != nil {
			d.terminal.Status(text)
		}
		_ = d.service.Status("%s", text)
		if due {
			since = time.Now()
			d.publishStats(lines)
		}
	}
}

// cool slows the cameras down while the machine is about to throttle, where that is asked for.
func (d *daemon) cool() {
	limits := d.limits.Load()
	factor := 1
	if limits.Margin > 0 {
		d.thermal.Margin, d.thermal.Hysteresis = limits.Margin, limits.Hysteresis
		factor = d.thermal.Step(d.monitor.Latest())
	} else {
		d.thermal = telemetry.Policy{}
	}
	if factor != d.factor {
		d.logger.Warn("rate changed for the machine's temperature", "interval_factor", factor)
		d.factor = factor
		d.pipeline.Slow(factor)
	}
}

// alive says whether the watchdog may be fed: frames of every camera come through, except of those that are known to be away or to have ended.
func (d *daemon) alive() bool {
	now := capture.Monotonic()
	alive, next := true, progress{}
	for _, totals := range d.pipeline.Totals() {
		camera := d.progress[totals.Camera]
		if frames := totals.Inferred + totals.Skipped; frames != camera.frames || camera.advanced == 0 {
			camera.frames, camera.advanced = frames, now
		}
		next[totals.Camera] = camera
		if now-camera.advanced < int64(stillWindow) {
			continue
		}
		switch d.captured(totals.Camera).State {
		case capture.Running, capture.Stalled: // a stalled one is not tried again: too many captures hang already
			alive = false
		}
	}
	d.progress = next
	return alive
}

func (d *daemon) statusLine(stats []pipeline.CameraStats) string {
	var line strings.Builder
	var fps float64
	var p50, p99 time.Duration
	var displaced uint64
	for i := range stats {
		fps += stats[i].FPS
		p50, p99 = max(p50, stats[i].P50), max(p99, stats[i].P99)
		camera := d.captured(stats[i].Camera)
		displaced += camera.Displaced
		if camera.State != capture.Running {
			fmt.Fprintf(&line, "%s %s  ", camera.Name, camera.State)
		}
	}
	if d.factor > 1 {
		fmt.Fprintf(&line, "cooling down: %d times the interval  ", d.factor)
	}
	fmt.Fprintf(&line, "%.1f fps  latency p50 %.1f ms p99 %.1f ms  displaced %d  ", fps, milliseconds(p50), milliseconds(p99), displaced)
	if c := d.building.Load(); c != nil {
		line.WriteString(c.text + "  ")
	}
	line.WriteString("mqtt ")
	if d.client == nil {
		line.WriteString("off")
	} else {
		line.WriteString(brokerState(d.client.Connection()))
	}
	return line.String()
}

// brokerState says in words how the client stands with its broker.
func brokerState(c mqtt.Connection) string {
	switch {
	case c.Connected:
		return "connected"
	case c.Error == "":
		return "connecting"
	}
	return "away: " + c.Error
}

// captured is the capture side of a camera; zero when it has just gone.
func (d *daemon) captured(name string) capture.Stats {
	for _, m := range d.fleet.Members() {
		if m.config.Name == name {
			return m.capture.Stats()
		}
	}
	return capture.Stats{Name: name}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (d *daemon) status() *mqtt.Status {
	model := d.pipeline.Model()
	status := &mqtt.Status{
		Version: release, Started: d.started, Backend: model.Backend, Reason: model.Reason, Hardware: model.Device, Model: model.Path,
		Precision: string(model.Precision), Accuracy: accuracyStatus(d.proof.Load()),
	}
	if c := d.building.Load(); c != nil && c.failed {
		status.Reason += "; " + c.text
	}
	for _, m := range d.fleet.Members() {
		stats := m.capture.Stats()
		status.Cameras = append(status.Cameras, mqtt.CameraStatus{
			Name: stats.Name, State: string(stats.State), Error: stats.Error, Hardware: d.pipeline.Device(stats.Name),
		})
	}
	return status
}

func (d *daemon) publishStats(stats []pipeline.CameraStats) {
	if d.client == nil {
		return
	}
	message := &mqtt.Stats{Started: d.started, Engine: d.pipeline.InferenceTime()}
	for i := range stats {
		camera := d.captured(stats[i].Camera)
		message.Cameras = append(message.Cameras, mqtt.CameraStats{
			Name: camera.Name, Captured: camera.FPS, Inferred: stats[i].FPS, Displaced: max(0, camera.FPS-stats[i].FPS),
			LatencyP50: stats[i].P50, LatencyP99: stats[i].P99,
		})
	}
	d.measure(message)
	d.client.Stats(message)
}

// cameraTotals is what one camera's frames came to over the whole run.
type cameraTotals struct {
	pipeline.CameraStats
	Hardware   string  `json:"hardware"` // that the network runs on
	Captured   uint64  `json:"captured"`
	Displaced  uint64  `json:"displaced"`
	Reconnects uint64  `json:"reconnects"`
	P50        float64 `json:"latency_p50_ms"`
	P99        float64 `json:"latency_p99_ms"`
	P999       float64 `json:"latency_p999_ms"`
	Max        float64 `json:"latency_max_ms"`
}

// totals is what the whole run came to.
func (d *daemon) totals() map[string]any {
	var cameras []cameraTotals
	for _, totals := range d.pipeline.Totals() {
		camera := d.captured(totals.Camera)
		cameras = append(cameras, cameraTotals{
			CameraStats: totals, Hardware: d.pipeline.Device(totals.Camera), Captured: camera.Captured, Displaced: camera.Displaced, Reconnects: camera.Reconnects,
			P50: milliseconds(totals.P50), P99: milliseconds(totals.P99), P999: milliseconds(totals.P999), Max: milliseconds(totals.Max),
		})
	}
	all := map[string]any{
		"cameras": cameras, "seconds": time.Since(d.started).Seconds(), "first_frame_ms": milliseconds(d.pipeline.FirstFrame()),
		"backend": d.pipeline.Model().Backend, "lines_dropped": d.json.Dropped(),
	}
	if d.client != nil {
		all["mqtt"] = d.client.Accounting()
	}
	return all
}
