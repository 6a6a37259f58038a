package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// webhookMetrics returns the metrics of webhooks in the order of METRICS.md.
func webhookMetrics() []daemonMetric {
	metric := func(name, help string, kind prometheus.ValueType, labels []string, read func(*webhook.Status, emit)) daemonMetric {
		return daemonMetric{
			prometheus.NewDesc("edge_infer_"+name, help, append([]string{"webhook"}, labels...), nil), kind,
			func(_ *Server, status *Status, emit emit) {
				for i := range status.Webhooks {
					read(&status.Webhooks[i], emit)
				}
			},
		}
	}
	return []daemonMetric{
		metric("webhook_up", "0 while the receiver takes no events.", prometheus.GaugeValue, nil, func(s *webhook.Status, emit emit) {
			emit(boolToFloat(s.Error == "" && !s.Disabled), s.Name)
		}),
		metric("webhook_events_total", "Events by outcome.", prometheus.CounterValue, []string{"outcome"}, func(s *webhook.Status, emit emit) {
			emit(float64(s.Delivered), s.Name, "delivered")
			emit(float64(s.Dropped), s.Name, "dropped")
		}),
		metric("webhook_queued", "Events waiting for the receiver.", prometheus.GaugeValue, nil, func(s *webhook.Status, emit emit) {
			emit(float64(s.Queued), s.Name)
		}),
	}
}
