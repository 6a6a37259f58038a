package daemon

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
)

// shownServers is the page's form of the servers that run the network.
func shownServers(s *device.Servers) *web.Servers {
	shown := &web.Servers{Retries: s.Retries, Answers: s.Answers, All: []web.RemoteServer{}}
	if s.Standby != nil {
		shown.Local, shown.LocalRequests, shown.Changes = s.Standby.Local, s.Standby.Requests, s.Standby.Changes
	}
	for _, server := range s.Servers {
		shown.All = append(shown.All, web.RemoteServer{
			Address: server.Address, Healthy: server.Healthy, Reason: server.Reason, Since: server.Since, Version: server.Version,
			Shared: server.Shared,
			OnGPU:  server.OnGPU, Unshared: server.Unshared,
			Wire:     server.Wire,
			Requests: server.Requests, Failures: server.Failures, Suspensions: server.Suspensions, LatencyMS: server.Latency, Sent: server.Sent,
			SentFrame: server.SentFrame, Received: server.Received,
		})
	}
	return shown
}
