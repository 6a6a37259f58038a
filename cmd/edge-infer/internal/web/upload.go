package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/upload"
)

// uploadMetrics returns the metrics of copying to a server in the order of METRICS.md.
func uploadMetrics() []daemonMetric {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	metric := func(name, help string, kind prometheus.ValueType, read func(*upload.Status) float64) daemonMetric {
		return daemonMetric{prometheus.NewDesc("edge_infer_"+name, help, nil, nil), kind, func(_ *Server, status *Status, emit emit) {
			if status.Upload != nil {
				emit(read(status.Upload))
			}
		}}
	}
	return []daemonMetric{
		metric("upload_up", "0 while clips and snapshots cannot be uploaded.", gauge,
			func(s *upload.Status) float64 { return boolToFloat(s.Error == "") }),
		metric("uploaded_total", "Clips and snapshots uploaded.", counter, func(s *upload.Status) float64 { return float64(s.Uploaded) }),
		metric("uploaded_bytes_total", "Size of the uploaded clips and snapshots.", counter,
			func(s *upload.Status) float64 { return float64(s.Bytes) }),
		metric("upload_failures_total", "Attempts that failed.", counter, func(s *upload.Status) float64 { return float64(s.Failures) }),
		metric("upload_lost_total", "Clips and snapshots removed from the disk before they could be uploaded.", counter,
			func(s *upload.Status) float64 { return float64(s.Lost) }),
		metric("upload_queued", "Clips and snapshots waiting.", gauge, func(s *upload.Status) float64 { return float64(s.Waiting) }),
	}
}
