package web

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/samples"
)

// sampleMetrics returns the metrics of frames for labelling in the order of METRICS.md.
func sampleMetrics() []daemonMetric {
	metric := func(name, help string, kind prometheus.ValueType, read func(*samples.Status) float64) daemonMetric {
		return daemonMetric{
			prometheus.NewDesc("edge_infer_"+name, help, nil, nil), kind, func(_ *Server, status *Status, emit emit) {
				if status.Samples != nil {
					emit(read(status.Samples))
				}
			},
		}
	}
	return []daemonMetric{
		metric("samples", "Frames kept for labelling.", prometheus.GaugeValue, func(s *samples.Status) float64 { return float64(s.Frames) }),
		metric("sample_bytes", "Size of these frames.", prometheus.GaugeValue, func(s *samples.Status) float64 { return float64(s.Bytes) }),
		metric("sample_failures_total", "Frames that could not be written.", prometheus.CounterValue,
			func(s *samples.Status) float64 { return float64(s.Failures) }),
	}
}

// serveSamples responds with the frames for labelling as a tar archive. An error ends the response early, which the client notices by the
// missing end of the transfer.
func (s *Server) serveSamples(w http.ResponseWriter, _ *http.Request) {
	if s.Source.Status().Samples == nil {
		http.Error(w, "no frames are kept for labelling (set samples.enabled)", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Content-Disposition", `attachment; filename="samples.tar"`)
	out := &slowWriter{ResponseWriter: w, control: http.NewResponseController(w), limit: s.limits.request}
	if samples.Export(s.Samples, out) != nil {
		panic(http.ErrAbortHandler)
	}
}
