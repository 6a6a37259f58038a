package diagnose

import (
	"cmp"
	"context"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
)

// servers checks each configured inference server. If none is available and there is no local fallback, that is a failure.
func (d *Doctor) servers(ctx context.Context) (checks []Check) {
	const name = "server"
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	unavailable := 0
	for _, s := range network.ProbeServers(ctx, d.Config) {
		if s.Reason == "" {
			checks = append(checks, ok(name, "%s: %s", s.Address, s.String()))
			continue
		}
		unavailable++
		remedy := cmp.Or(s.Hint, "see the server's log")
		checks = append(checks, warn(name, remedy, "%s", s.Reason))
	}
	if unavailable < len(checks) || d.Config.Remote.Fallback == config.Local {
		return checks
	}
	for i := range checks {
		checks[i].Status = Fail
	}
	return checks
}
