package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/verify"
)

// verifyMetrics returns the metrics of the verification service in the order of METRICS.md.
func verifyMetrics() []daemonMetric {
	metric := func(name, help string, kind prometheus.ValueType, labels []string, read func(*verify.Status, emit)) daemonMetric {
		return daemonMetric{prometheus.NewDesc("edge_infer_"+name, help, labels, nil), kind, func(_ *Server, status *Status, emit emit) {
			if status.Verify != nil {
				read(status.Verify, emit)
			}
		}}
	}
	return []daemonMetric{
		metric("verify_up", "0 while the verification service gives no answers.", prometheus.GaugeValue, nil, func(s *verify.Status, emit emit) {
			emit(boolToFloat(s.Error == ""))
		}),
		metric("verify_asked_total", "Questions to the verification service.", prometheus.CounterValue, nil, func(s *verify.Status, emit emit) {
			emit(float64(s.Asked))
		}),
		metric("verify_objects_total", "Objects by outcome.", prometheus.CounterValue, []string{"outcome"}, func(s *verify.Status, emit emit) {
			emit(float64(s.Confirmed), "confirmed")
			emit(float64(s.Relabelled), "relabelled")
			emit(float64(s.Dropped), "dropped")
			emit(float64(s.Unanswered), "unanswered")
		}),
		metric("verify_held", "Objects waiting for an answer.", prometheus.GaugeValue, nil, func(s *verify.Status, emit emit) {
			emit(float64(s.Held))
		}),
		metric("verify_p50_seconds", "Median duration of the latest answers.", prometheus.GaugeValue, nil, func(s *verify.Status, emit emit) {
			emit(s.P50)
		}),
		metric("verify_p99_seconds", "99th percentile of the duration of the latest answers.", prometheus.GaugeValue, nil,
			func(s *verify.Status, emit emit) { emit(s.P99) }),
	}
}
