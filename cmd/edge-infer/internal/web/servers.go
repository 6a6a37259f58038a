package web

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/internal/inflight"
)

// Servers is the state of remote inference servers. Counters run from the start.
type Servers struct {
	All     []RemoteServer `json:"all"`
	Retries uint64         `json:"retries"`
	Answers inflight.Stats `json:"answers"` // the memory of their answers
	// Local is set while the local engine stands in; LocalRequests counts its requests, Changes how often it took over.
	Local         bool   `json:"local"`
	LocalRequests uint64 `json:"local_requests"`
	Changes       uint64 `json:"changes"`
}

// RemoteServer is the state of one inference server.
type RemoteServer struct {
	Address     string    `json:"address"`
	Healthy     bool      `json:"healthy"`
	Reason      string    `json:"reason,omitempty"`
	Since       time.Time `json:"since,omitzero"`
	Version     string    `json:"version"`
	Shared      bool      `json:"shared_memory"`
	OnGPU       bool      `json:"shared_gpu_memory"`  // the shared memory is on the GPU
	Unshared    string    `json:"unshared,omitempty"` // why shared memory is not used although configured
	Wire        string    `json:"wire,omitempty"`     // encoding of images
	Requests    uint64    `json:"requests"`
	Failures    uint64    `json:"failures"`
	Suspensions uint64    `json:"suspensions"`
	LatencyMS   float64   `json:"latency_ms"`
	Sent        uint64    `json:"sent_bytes"`
	SentFrame   float64   `json:"sent_bytes_per_frame"`
	Received    uint64    `json:"received_bytes"`
}

// forServers calls read for each inference server.
func forServers(read func(*RemoteServer) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		if status.Servers == nil {
			return
		}
		for i := range status.Servers.All {
			emit(read(&status.Servers.All[i]), status.Servers.All[i].Address)
		}
	}
}

// forStandby calls read if inference servers are used.
func forStandby(read func(*Servers) float64) func(*Server, *Status, emit) {
	return func(_ *Server, status *Status, emit emit) {
		if status.Servers != nil {
			emit(read(status.Servers))
		}
	}
}

// serverMetrics returns the metrics of inference servers, in the order of METRICS.md.
func serverMetrics() []daemonMetric {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	of := func(name, help string, kind prometheus.ValueType, read func(*RemoteServer) float64) daemonMetric {
		return daemonMetric{prometheus.NewDesc("edge_infer_"+name, help, []string{"server"}, nil), kind, forServers(read)}
	}
	all := func(name, help string, kind prometheus.ValueType, read func(*Servers) float64) daemonMetric {
		return daemonMetric{prometheus.NewDesc("edge_infer_"+name, help, nil, nil), kind, forStandby(read)}
	}
	return []daemonMetric{
		of("server_up", "1 while the server is in use.", gauge, func(s *RemoteServer) float64 { return boolToFloat(s.Healthy) }),
		of("server_requests_total", "Requests to the server.", counter, func(s *RemoteServer) float64 { return float64(s.Requests) }),
		of("server_failures_total", "Failed requests to the server.", counter, func(s *RemoteServer) float64 { return float64(s.Failures) }),
		of("server_suspensions_total", "Times the server was suspended.", counter,
			func(s *RemoteServer) float64 { return float64(s.Suspensions) }),
		of("server_latency_seconds", "Smoothed time of a request.", gauge, func(s *RemoteServer) float64 { return s.LatencyMS / 1000 }),
		of("server_sent_bytes_total", "Bytes sent to the server.", counter, func(s *RemoteServer) float64 { return float64(s.Sent) }),
		of(
			"server_received_bytes_total",
			"Bytes received from the server.",
			counter,
			func(s *RemoteServer) float64 { return float64(s.Received) },
		),
		of("server_sent_bytes_per_frame", "Bytes sent per image.", gauge,
			func(s *RemoteServer) float64 { return s.SentFrame }),
		all("server_bytes_in_flight", "Memory of the servers' answers.", gauge, func(s *Servers) float64 { return float64(s.Answers.Used) }),
		all("server_bytes_in_flight_limit", "The limit of remote.memory_mb.", gauge, func(s *Servers) float64 { return float64(s.Answers.Max) }),
		all("server_over_limit_total", "Answers refused because of remote.memory_mb.", counter,
			func(s *Servers) float64 { return float64(s.Answers.Refused) }),
		all("server_retries_total", "Requests that were retried.", counter, func(s *Servers) float64 { return float64(s.Retries) }),
		all(
			"standby_active",
			"1 while the local engine stands in for the servers.",
			gauge,
			func(s *Servers) float64 { return boolToFloat(s.Local) },
		),
		all("standby_requests_total", "Requests processed by the local engine.", counter,
			func(s *Servers) float64 { return float64(s.LocalRequests) }),
		all("standby_changes_total", "Times the local engine took over.", counter, func(s *Servers) float64 { return float64(s.Changes) }),
	}
}
