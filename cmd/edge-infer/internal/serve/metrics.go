package serve

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
	"github.com/edge-infer/edge-infer/engine/kserve/server"
)

// withMetrics adds /metrics, for every role, to the paths of the protocol.
func withMetrics(handler *server.Server, c *credentials) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "edge_infer_serve_bytes_in_flight", Help: "Bytes of the requests that are being read or answered.",
		}, func() float64 { return float64(handler.Budget.Stats().Used) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "edge_infer_serve_bytes_in_flight_limit", Help: "The limit of --max-in-flight.",
		}, func() float64 { return float64(handler.Budget.Max) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "edge_infer_serve_over_limit_total", Help: "Requests refused because of --max-in-flight.",
		}, func() float64 { return float64(handler.Budget.Stats().Refused) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "edge_infer_serve_logins_refused_total", Help: "Requests with a wrong token, since it was read.",
		}, func() float64 { return float64(c.control.Load().Refused()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	exporter := promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2})
	mux := http.NewServeMux()
	mux.Handle("/", handler)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		c.control.Load().Restricted(access.RoleMetrics, exporter).ServeHTTP(w, r)
	})
	return mux
}
