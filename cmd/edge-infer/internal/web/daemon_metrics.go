package web

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/capture"
)

// Operation is how the daemon does besides its frames.
type Operation struct {
	Restarts int `json:"restarts"` // in place of itself, since the service started
	// Watchdog is how much longer the loop that is furthest behind may be stuck before the watchdog bites.
	Watchdog     time.Duration   `json:"-"`
	Certificates []Certificate   `json:"certificates"`
	Delivery     *Delivery       `json:"delivery,omitempty"` // nil when MQTT is off
	Embedded     *EmbeddedBroker `json:"embedded,omitempty"` // nil without the embedded broker
}

// Certificate is one that the configuration names.
type Certificate struct {
	Use     string    `json:"use"` // page, mqtt, or mqtt authority
	Expires time.Time `json:"expires"`
}

// Delivery is how messages get to the broker. Counters run from the start.
type Delivery struct {
	Connected     bool          `json:"connected"`
	Since         time.Time     `json:"since,omitzero"` // of the last change of Connected
	Connects      uint64        `json:"connects"`
	Repeats       uint64        `json:"repeats"`        // events that were sent more than once
	LargestPacket int           `json:"largest_packet"` // bytes, that a broker has taken
	TooLarge      uint64        `json:"too_large"`      // messages that were set aside
	SpoolBytes    int64         `json:"spool_bytes"`
	SpoolOldest   time.Duration `json:"-"` // age
	SpoolFailures uint64        `json:"spool_failures"`
	SpoolLost     uint64        `json:"spool_lost"`
}

// EmbeddedBroker is how the embedded broker does.
type EmbeddedBroker struct {
	Connections      int    `json:"connections"`
	Refused          uint64 `json:"refused"`
	Panics           uint64 `json:"panics"`
	RetainedMessages int    `json:"retained_messages"`
	RetainedBytes    int64  `json:"retained_bytes"`
	NotRetained      uint64 `json:"not_retained"`
}

// daemonMetric is one metric of how the daemon does.
type daemonMetric struct {
	*prometheus.Desc
	kind prometheus.ValueType
	// read emits the metric's values; what is not known has none.
	read func(s *Server, status *Status, emit func(value float64, labels ...string))
}

type emit = func(value float64, labels ...string)

// forDelivery and forEmbedded read a value where there is a broker.
func forDelivery(read func(*Delivery) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		if d := status.Operation.Delivery; d != nil {
			emit(read(d))
		}
	}
}

func forEmbedded(read func(*EmbeddedBroker) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		if b := status.Operation.Embedded; b != nil {
			emit(read(b))
		}
	}
}

// forCameras reads a value of each camera.
func forCameras(read func(*capture.Stats, emit)) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		for i := range status.Cameras {
			read(&status.Cameras[i].Capture, emit)
		}
	}
}

func boolToFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// daemonMetrics lists them in the order of METRICS.md.
func daemonMetrics() []daemonMetric {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	metric := func(name, help string, kind prometheus.ValueType, read func(*Server, *Status, emit), labels ...string) daemonMetric {
		return daemonMetric{prometheus.NewDesc("edge_infer_"+name, help, labels, nil), kind, read}
	}
	return append([]daemonMetric{
		metric("camera_state", "Always 1; the label says what the camera does.", gauge, forCameras(func(c *capture.Stats, emit emit) {
			emit(1, c.Name, string(c.State))
		}), "camera", "state"),
		metric("camera_last_frame_seconds", "Age of the newest image.", gauge, forCameras(func(c *capture.Stats, emit emit) {
			if !c.LastImage.IsZero() {
				emit(max(0, time.Since(c.LastImage).Seconds()), c.Name)
			}
		}), "camera"),
		metric("camera_tries", "Times the camera was opened since its last image.", gauge, forCameras(func(c *capture.Stats, emit emit) {
			emit(float64(c.Tries), c.Name)
		}), "camera"),
		metric("camera_abandoned_total", "Captures left behind because they hung.", counter, forCameras(func(c *capture.Stats, emit emit) {
			emit(float64(c.Abandoned), c.Name)
		}), "camera"),
		metric("mqtt_connected", "1 while a broker is connected.", gauge, forDelivery(func(d *Delivery) float64 { return boolToFloat(d.Connected) })),
		metric("mqtt_since_seconds", "When the connection came up or broke off, Unix time.", gauge, func(_ *Server, status *Status, emit emit) {
			if d := status.Operation.Delivery; d != nil && !d.Since.IsZero() {
				emit(unixSeconds(d.Since))
			}
		}),
		metric("mqtt_connects_total", "Connections that came up.", counter, forDelivery(func(d *Delivery) float64 { return float64(d.Connects) })),
		metric("mqtt_largest_packet_bytes", "Largest packet that a broker has taken.", gauge,
			forDelivery(func(d *Delivery) float64 { return float64(d.LargestPacket) })),
		metric("mqtt_too_large_total", "Messages set aside because the broker takes none so large.", counter,
			forDelivery(func(d *Delivery) float64 { return float64(d.TooLarge) })),
		metric("mqtt_repeats_total", "Events that were sent more than once.", counter,
			forDelivery(func(d *Delivery) float64 { return float64(d.Repeats) })),
		metric("spool_bytes", "Events that wait for the broker.", gauge, forDelivery(func(d *Delivery) float64 { return float64(d.SpoolBytes) })),
		metric("spool_oldest_seconds", "Age of the oldest event that waits.", gauge,
			forDelivery(func(d *Delivery) float64 { return d.SpoolOldest.Seconds() })),
		metric("spool_failures_total", "Attempts to write events to disk that failed.", counter,
			forDelivery(func(d *Delivery) float64 { return float64(d.SpoolFailures) })),
		metric("spool_lost_total", "Events that damaged files have lost.", counter,
			forDelivery(func(d *Delivery) float64 { return float64(d.SpoolLost) })),
		metric("broker_connections", "Clients of the embedded broker.", gauge,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Connections) })),
		metric("broker_refused_total", "Connections that the embedded broker ended for a limit or a packet's form.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Refused) })),
		metric("broker_panics_total", "Connections on which the embedded broker failed.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Panics) })),
		metric("broker_retained_messages", "Messages that the embedded broker keeps.", gauge,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.RetainedMessages) })),
		metric("broker_retained_bytes", "Topics and payloads of those.", gauge,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.RetainedBytes) })),
		metric("broker_not_retained_total", "Messages passed on and not kept, for the limits.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.NotRetained) })),
		metric("reload_success", "1 when the configuration that was read last is in force, 0 when the one before is.", gauge,
			forReload(func(r *Reload) float64 { return boolToFloat(r.Error == "") })),
		metric("reload_time_seconds", "When the configuration was read last, Unix time.", gauge,
			forReload(func(r *Reload) float64 { return unixSeconds(r.At) })),
		metric("restarts_total", "Restarts in place, since the service started.", counter, func(_ *Server, status *Status, emit emit) {
			emit(float64(status.Operation.Restarts))
		}),
		metric("watchdog_margin_seconds", "How much longer the loop that is furthest behind may be stuck.", gauge,
			func(_ *Server, status *Status, emit emit) { emit(status.Operation.Watchdog.Seconds()) }),
		metric("certificate_left_seconds", "How much longer the certificate is valid.", gauge, func(_ *Server, status *Status, emit emit) {
			for _, c := range status.Operation.Certificates {
				emit(time.Until(c.Expires).Seconds(), c.Use)
			}
		}, "use"),
		metric("web_refused_logins_total", "Wrong tokens and passwords on the page.", counter, func(s *Server, _ *Status, emit emit) {
			emit(float64(s.access.Refused()))
		}),
	}, append(serverMetrics(), historyMetrics()...)...)
}

func forReload(read func(*Reload) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		if !status.Reload.At.IsZero() {
			emit(read(&status.Reload))
		}
	}
}

// daemonCollector turns the server's source into those metrics at the moment they are asked for.
type daemonCollector struct {
	server  *Server
	metrics []daemonMetric
}

// Describe implements prometheus.Collector.
func (c *daemonCollector) Describe(out chan<- *prometheus.Desc) {
	for i := range c.metrics {
		out <- c.metrics[i].Desc
	}
}

// Collect implements prometheus.Collector.
func (c *daemonCollector) Collect(out chan<- prometheus.Metric) {
	status := c.server.status()
	for i := range c.metrics {
		m := &c.metrics[i]
		m.read(c.server, &status, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(m.Desc, m.kind, value, readable(labels)...)
		})
	}
}
