package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
)

// updateMetrics returns the metrics of model updates in the order of METRICS.md.
func updateMetrics() []daemonMetric {
	metric := func(name, help string, labels []string, read func(*update.Status, emit)) daemonMetric {
		return daemonMetric{
			prometheus.NewDesc("edge_infer_"+name, help, labels, nil), prometheus.GaugeValue,
			func(_ *Server, status *Status, emit emit) {
				if status.Update != nil {
					read(status.Update, emit)
				}
			},
		}
	}
	return []daemonMetric{
		metric("update_check_success", "0 while the source gives no bundle, or the server no jobs.", nil, func(s *update.Status, emit emit) {
			emit(boolToFloat(s.Error == "" && s.ServerError == ""))
		}),
		metric("update_check_time_seconds", "Time of the last check, Unix time.", nil, func(s *update.Status, emit emit) {
			emit(unixSeconds(s.Checked))
		}),
		metric("update_version", "Version of the installed bundle.", []string{"model"}, func(s *update.Status, emit emit) {
			if s.Model != "" {
				emit(float64(s.Version), s.Model)
			}
		}),
		metric("update_refused", "1 if the newest bundle was refused on this device.", nil, func(s *update.Status, emit emit) {
			emit(boolToFloat(s.Last != nil && !s.Last.Installed()))
		}),
	}
}
