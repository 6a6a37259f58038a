package web

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
)

// Operation is the state of the daemon apart from its frames.
type Operation struct {
	Restarts int `json:"restarts"` // restarts in place, since the service started
	// Watchdog is the time left until the slowest loop would miss the watchdog.
	Watchdog     time.Duration   `json:"-"`
	Certificates []Certificate   `json:"certificates"`
	Delivery     *Delivery       `json:"delivery,omitempty"` // nil when MQTT is off
	Embedded     *EmbeddedBroker `json:"embedded,omitempty"` // nil without the embedded broker
}

// Certificate is a configured certificate.
type Certificate struct {
	Use     string    `json:"use"` // page, mqtt, or mqtt authority
	Expires time.Time `json:"expires"`
}

// Delivery is the state of MQTT delivery. Counters run from the start.
type Delivery struct {
	Connected     bool          `json:"connected"`
	Since         time.Time     `json:"since,omitzero"` // last change of Connected
	Connects      uint64        `json:"connects"`
	Repeats       uint64        `json:"repeats"`        // events sent more than once
	LargestPacket int           `json:"largest_packet"` // bytes, accepted by a broker
	TooLarge      uint64        `json:"too_large"`      // messages too large for the broker
	SpoolBytes    int64         `json:"spool_bytes"`
	SpoolOldest   time.Duration `json:"-"` // age of the oldest event
	SpoolFailures uint64        `json:"spool_failures"`
	SpoolLost     uint64        `json:"spool_lost"`
}

// EmbeddedBroker is the state of the embedded broker.
type EmbeddedBroker struct {
	Connections      int    `json:"connections"`
	Refused          uint64 `json:"refused"`
	Panics           uint64 `json:"panics"`
	RetainedMessages int    `json:"retained_messages"`
	RetainedBytes    int64  `json:"retained_bytes"`
	NotRetained      uint64 `json:"not_retained"`
	Sessions         int    `json:"sessions"`
	EvictedSessions  uint64 `json:"evicted_sessions"`
	QueuedBytes      int64  `json:"queued_bytes"`
	RemovedSessions  uint64 `json:"removed_sessions"`
	Undelivered      uint64 `json:"undelivered"`
	Delayed          uint64 `json:"delayed"`
}

// daemonMetric is a metric of Operation.
type daemonMetric struct {
	*prometheus.Desc
	kind prometheus.ValueType
	// read emits the metric's values, none if they are unknown.
	read func(s *Server, status *Status, emit func(value float64, labels ...string))
}

type emit = func(value float64, labels ...string)

// forDelivery and forEmbedded call read if there is a broker.
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

// forStore calls read if events are stored.
func forStore(read func(*store.Stats) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		if status.EventStore != nil {
			emit(read(status.EventStore))
		}
	}
}

// forSecondary calls read for each secondary network.
func forSecondary(read func(*SecondaryNetwork) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		for i := range status.Secondary {
			emit(read(&status.Secondary[i]), status.Secondary[i].Name)
		}
	}
}

// forCameras calls read for each camera.
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

// daemonMetrics returns the metrics of the daemon in the order of METRICS.md. It is long because it is the table of them.
func daemonMetrics() []daemonMetric {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	metric := func(name, help string, kind prometheus.ValueType, read func(*Server, *Status, emit), labels ...string) daemonMetric {
		return daemonMetric{prometheus.NewDesc("edge_infer_"+name, help, labels, nil), kind, read}
	}
	return append([]daemonMetric{
		metric("camera_state", "Always 1; the label is the state of the camera.", gauge, forCameras(func(c *capture.Stats, emit emit) {
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
		metric("camera_abandoned_total", "Captures abandoned because they hung.", counter, forCameras(func(c *capture.Stats, emit emit) {
			emit(float64(c.Abandoned), c.Name)
		}), "camera"),
		metric("secondary_crops_total", "Objects classified by a secondary network.", counter, forSecondary(func(n *SecondaryNetwork) float64 {
			return float64(n.Crops)
		}), "network"),
		metric("secondary_failed_total", "Objects for which a secondary network gave no valid result.", counter,
			forSecondary(func(n *SecondaryNetwork) float64 { return float64(n.Failed) }), "network"),
		metric("secondary_missed_total", "Objects that waited for another interval, because a secondary network was not free.", counter,
			forSecondary(func(n *SecondaryNetwork) float64 { return float64(n.Missed) }), "network"),
		metric("secondary_hangs", "1 while a secondary network has given no result for ten seconds.", gauge,
			forSecondary(func(n *SecondaryNetwork) float64 { return boolToFloat(n.Hangs) }), "network"),
		metric("secondary_slow", "1 while a secondary network does not keep up.", gauge,
			forSecondary(func(n *SecondaryNetwork) float64 { return boolToFloat(n.Slow) }), "network"),
		metric("secondary_last_result_seconds", "Age of a secondary network's newest result.", gauge,
			func(_ *Server, status *Status, emit emit) {
				for _, n := range status.Secondary {
					if !n.Last.IsZero() {
						emit(max(0, time.Since(n.Last).Seconds()), n.Name)
					}
				}
			}, "network"),
		metric(
			"mqtt_connected",
			"1 while a broker is connected.",
			gauge,
			forDelivery(func(d *Delivery) float64 { return boolToFloat(d.Connected) }),
		),
		metric("mqtt_since_seconds", "Time of the last connect or disconnect, Unix time.", gauge, func(_ *Server, status *Status, emit emit) {
			if d := status.Operation.Delivery; d != nil && !d.Since.IsZero() {
				emit(unixSeconds(d.Since))
			}
		}),
		metric("mqtt_connects_total", "Successful connections.", counter, forDelivery(func(d *Delivery) float64 { return float64(d.Connects) })),
		metric("mqtt_largest_packet_bytes", "Largest packet accepted by a broker.", gauge,
			forDelivery(func(d *Delivery) float64 { return float64(d.LargestPacket) })),
		metric("mqtt_too_large_total", "Messages dropped because they exceed the broker's maximum packet size.", counter,
			forDelivery(func(d *Delivery) float64 { return float64(d.TooLarge) })),
		metric("mqtt_repeats_total", "Events sent more than once.", counter,
			forDelivery(func(d *Delivery) float64 { return float64(d.Repeats) })),
		metric(
			"spool_bytes",
			"Size of the events waiting for the broker.",
			gauge,
			forDelivery(func(d *Delivery) float64 { return float64(d.SpoolBytes) }),
		),
		metric("spool_oldest_seconds", "Age of the oldest waiting event.", gauge,
			forDelivery(func(d *Delivery) float64 { return d.SpoolOldest.Seconds() })),
		metric("spool_failures_total", "Failed writes of events to disk.", counter,
			forDelivery(func(d *Delivery) float64 { return float64(d.SpoolFailures) })),
		metric("spool_lost_total", "Events lost in damaged files.", counter,
			forDelivery(func(d *Delivery) float64 { return float64(d.SpoolLost) })),
		metric("event_store_up", "1 while events can be stored.", gauge,
			forStore(func(e *store.Stats) float64 { return boolToFloat(e.Error == "") })),
		metric("event_store_changes_total", "Changes of events in the event store.", counter,
			forStore(func(e *store.Stats) float64 { return float64(e.Stored) })),
		metric("event_store_dropped_total", "Changes of events, and snapshots, that could not be stored.", counter,
			forStore(func(e *store.Stats) float64 { return float64(e.Dropped) })),
		metric("broker_connections", "Clients of the embedded broker.", gauge,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Connections) })),
		metric("broker_refused_total", "Connections closed by the embedded broker because of a limit or a malformed packet.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Refused) })),
		metric("broker_panics_total", "Connections closed because of an internal error of the embedded broker.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Panics) })),
		metric("broker_retained_messages", "Retained messages of the embedded broker.", gauge,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.RetainedMessages) })),
		metric("broker_retained_bytes", "Size of their topics and payloads.", gauge,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.RetainedBytes) })),
		metric("broker_not_retained_total", "Messages delivered but not retained because of limits.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.NotRetained) })),
		metric("broker_sessions", "Connected clients and stored sessions.", gauge,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Sessions) })),
		metric("broker_sessions_evicted_total", "Stored sessions removed for new clients because of the limit.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.EvictedSessions) })),
		metric("broker_queued_bytes", "Size of the messages that clients have not acknowledged.", gauge,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.QueuedBytes) })),
		metric("broker_sessions_removed_total", "Sessions removed because too many bytes waited for them.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.RemovedSessions) })),
		metric("broker_undelivered_total", "Messages discarded for a client for which too many waited.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Undelivered) })),
		metric("broker_delayed_total", "Times a client waited because its address caused more work than its share.", counter,
			forEmbedded(func(b *EmbeddedBroker) float64 { return float64(b.Delayed) })),
		metric("reload_success", "1 if the last reload of the configuration succeeded, 0 if it was rejected.", gauge,
			forReload(func(r *Reload) float64 { return boolToFloat(r.Error == "") })),
		metric("reload_time_seconds", "Time of the last reload, Unix time.", gauge,
			forReload(func(r *Reload) float64 { return unixSeconds(r.At) })),
		metric("restarts_total", "Restarts in place since the service started.", counter, func(_ *Server, status *Status, emit emit) {
			emit(float64(status.Operation.Restarts))
		}),
		metric("watchdog_margin_seconds", "Time left until the slowest loop would miss the watchdog.", gauge,
			func(_ *Server, status *Status, emit emit) { emit(status.Operation.Watchdog.Seconds()) }),
		metric("certificate_left_seconds", "Remaining validity of the certificate.", gauge, func(_ *Server, status *Status, emit emit) {
			for _, c := range status.Operation.Certificates {
				emit(time.Until(c.Expires).Seconds(), c.Use)
			}
		}, "use"),
		metric("web_refused_logins_total", "Wrong tokens and passwords on the page.", counter, func(s *Server, _ *Status, emit emit) {
			emit(float64(s.access.Refused()))
		}),
	}, slices.Concat(serverMetrics(), historyMetrics(), clipMetrics(), webhookMetrics(), verifyMetrics(), updateMetrics(), sampleMetrics(),
		uploadMetrics())...)
}

func forReload(read func(*Reload) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		if !status.Reload.At.IsZero() {
			emit(read(&status.Reload))
		}
	}
}

// daemonCollector converts the server's status into those metrics at each scrape.
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
