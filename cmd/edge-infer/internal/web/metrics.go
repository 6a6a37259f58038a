package web

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// collector converts the server's status into metrics at each scrape.
type collector struct {
	server *Server
	metrics
}

// metrics are the descriptions of the frame metrics.
type metrics struct {
	info, engine, started, inference, memory                    *prometheus.Desc
	captured, damaged, reconnects, running, fps, networkUp      *prometheus.Desc
	inferred, dropped, cut, deadlineMissed, detections, latency *prometheus.Desc
	messages, queued                                            *prometheus.Desc
	temperature, power, load, clock, throttled, overCurrents    *prometheus.Desc
	viewers, images, imagesMissed, messagesLost, opening        *prometheus.Desc
	bytesInFlight, bytesInFlightLimit, overLimit                *prometheus.Desc
	slowdown, stages                                            *prometheus.Desc
}

func newMetrics() metrics {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("edge_infer_"+name, help, labels, nil)
	}
	return metrics{
		info: describe("info", "Always 1; the labels are version and device.", "version", "device"),
		engine: describe("engine_info", "Always 1; the labels describe the engine.", "backend", "backend_version", "hardware",
			"model", "precision"),
		started:            describe("start_time_seconds", "When the daemon started, Unix time."),
		inference:          describe("inference_seconds", "Smoothed time of one request to the engine."),
		memory:             describe("frame_memory_bytes", "Engine memory held by the frames of cameras."),
		captured:           describe("frames_captured_total", "Frames that arrived from the camera.", "camera"),
		inferred:           describe("frames_inferred_total", "Frames processed by the network.", "camera"),
		dropped:            describe("frames_dropped_total", "Frames that were not processed, by reason.", "camera", "reason"),
		cut:                describe("frames_cut_total", "Frames with more detections than the limit, without the weakest.", "camera"),
		deadlineMissed:     describe("deadline_missed_total", "Results older than the camera's deadline.", "camera"),
		detections:         describe("detections_total", "Objects reported.", "camera"),
		latency:            describe("latency_seconds", "Time from a frame's arrival to its detections.", "camera"),
		damaged:            describe("camera_damaged_total", "Images that could not be decoded or exceeded a limit.", "camera"),
		reconnects:         describe("camera_reconnects_total", "Times the camera was opened again.", "camera"),
		running:            describe("camera_running", "1 while the camera delivers frames.", "camera"),
		networkUp:          describe("camera_network_up", "0 while the camera's network has failed and is not used.", "camera"),
		fps:                describe("camera_fps", "Measured frame rate of the camera.", "camera"),
		messages:           describe("messages_total", "MQTT messages by outcome.", "queue", "outcome"),
		queued:             describe("messages_queued", "MQTT messages waiting for the broker.", "queue"),
		temperature:        describe("temperature_celsius", "Temperature by sensor.", "sensor"),
		power:              describe("power_watts", "Power by rail.", "rail"),
		load:               describe("load_ratio", "Load by unit, 0 to 1.", "unit"),
		clock:              describe("clock_hertz", "Clock rate by unit.", "unit"),
		throttled:          describe("throttled", "1 while the part is throttled; absent otherwise.", "part"),
		overCurrents:       describe("over_currents_total", "Times a Jetson has throttled because of over-current since it was started."),
		slowdown:           describe("camera_slowdown", "Factor applied to the time between two inferences; 1 at full speed.", "camera"),
		stages:             describe("stage_seconds", "Latency of a processing stage.", "stage"),
		viewers:            describe("web_viewers", "Open streams of the web page."),
		images:             describe("web_images_total", "Images encoded for the web page."),
		imagesMissed:       describe("web_images_missed_total", "Images skipped because the encoder was busy."),
		opening:            describe("opening", "1 while an engine plan is being built and no frames are processed yet."),
		bytesInFlight:      describe("web_bytes_in_flight", "Memory of what clients of the web page requested and have not read."),
		bytesInFlightLimit: describe("web_bytes_in_flight_limit", "The limit of web.memory_mb."),
		overLimit:          describe("web_over_limit_total", "Requests, images and messages refused because of web.memory_mb."),
		messagesLost:       describe("web_messages_lost_total", "Messages dropped because a viewer of the web page was too slow."),
	}
}

// all returns all descriptions.
func (m *metrics) all() []*prometheus.Desc {
	return []*prometheus.Desc{
		m.info, m.engine, m.started, m.inference, m.memory, m.captured, m.inferred, m.dropped, m.cut, m.deadlineMissed,
		m.detections, m.latency, m.damaged, m.reconnects, m.running, m.fps, m.messages, m.queued, m.temperature, m.power, m.load, m.clock,
		m.throttled, m.viewers, m.images, m.imagesMissed, m.messagesLost, m.opening, m.slowdown, m.stages, m.networkUp,
		m.overCurrents, m.bytesInFlight, m.bytesInFlightLimit, m.overLimit,
	}
}

// exporter returns the handler of /metrics.
func (s *Server) exporter() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&collector{s, newMetrics()}, &daemonCollector{s, daemonMetrics()}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, ErrorHandling: promhttp.ContinueOnError})
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, description := range c.all() {
		out <- description
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, value uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), readable(labels)...)
	}
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, readable(labels)...)
	}
	status := c.server.status()
	e := &status.Engine
	gauge(c.info, 1, status.Version, status.Device)
	gauge(c.engine, 1, e.Backend, e.Version, e.Device, e.Model, e.Precision)
	gauge(c.opening, boolToFloat(status.Opening != ""))
	gauge(c.started, float64(status.Started.UnixMilli())/1000)
	gauge(c.inference, e.Inference.Seconds())
	gauge(c.memory, float64(status.FrameMemory))
	for i := range status.Cameras {
		name, camera, frames := status.Cameras[i].Capture.Name, &status.Cameras[i].Capture, &status.Cameras[i].Pipeline
		counter(c.captured, camera.Captured, name)
		counter(c.damaged, camera.Damaged, name)
		counter(c.reconnects, camera.Reconnects, name)
		gauge(c.running, boolToFloat(camera.State == capture.Running), name)
		gauge(c.fps, camera.FPS, name)
		gauge(c.networkUp, boolToFloat(!frames.NetworkFailed), name)
		counter(c.inferred, frames.Inferred, name)
		counter(c.dropped, camera.Dropped, name, "newer")
		counter(c.dropped, frames.DroppedInterval, name, "interval")
		counter(c.dropped, frames.DroppedMotion, name, "motion")
		counter(c.dropped, frames.DroppedDeadline, name, "deadline")
		counter(c.dropped, frames.DroppedError, name, "error")
		counter(c.deadlineMissed, frames.DeadlineMissed, name)
		gauge(c.slowdown, float64(max(frames.Slowdown, 1)), name)
		counter(c.cut, frames.Cut, name)
		counter(c.detections, frames.Detections, name)
		out <- histogram(c.latency, &frames.Latency, readable([]string{name})[0])
	}
	for _, q := range status.Queues {
		counter(c.messages, q.Offered, q.Name, "offered")
		counter(c.messages, q.Delivered, q.Name, "delivered")
		counter(c.messages, q.Superseded, q.Name, "superseded")
		counter(c.messages, q.Dropped, q.Name, "dropped")
		gauge(c.queued, float64(q.Queued), q.Name)
	}
	for i := range status.Stages {
		s := &status.Stages[i].Summary
		out <- prometheus.MustNewConstSummary(c.stages, s.Count, s.Sum.Seconds(), map[float64]float64{
			0.5: s.P50.Seconds(), 0.99: s.P99.Seconds(), 0.999: s.P999.Seconds(), 1: s.Max.Seconds(),
		}, s.Stage.String())
	}
	kinds := map[string]*prometheus.Desc{
		"temperature": c.temperature, "power": c.power, "load": c.load, "clock": c.clock,
		"throttled": c.throttled,
	}
	for _, r := range status.Readings {
		if d := kinds[r.Kind]; d != nil {
			gauge(d, r.Value, r.Name)
		}
		if r.Kind == "over-current" {
			counter(c.overCurrents, uint64(r.Value))
		}
	}
	feed := c.server.feed.Stats()
	gauge(c.viewers, float64(feed.Viewers))
	counter(c.images, feed.Images)
	counter(c.imagesMissed, feed.Missed)
	counter(c.messagesLost, feed.Lost)
	memory := c.server.memory.Stats()
	gauge(c.bytesInFlight, float64(memory.Used))
	gauge(c.bytesInFlightLimit, float64(memory.Max))
	counter(c.overLimit, memory.Refused)
}

// readable replaces invalid UTF-8, which Prometheus rejects in labels.
func readable(labels []string) []string {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
	}
	return labels
}

// histogram converts bucket counts to cumulative ones.
func histogram(d *prometheus.Desc, h *pipeline.Histogram, camera string) prometheus.Metric {
	cumulative := map[float64]uint64{}
	var count uint64
	for i, bound := range h.Bounds() {
		count += h.Counts[i]
		cumulative[bound.Seconds()] = count
	}
	count += h.Counts[len(h.Counts)-1]
	return prometheus.MustNewConstHistogram(d, count, h.Sum.Seconds(), cumulative, camera)
}
