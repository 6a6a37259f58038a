package doctor

import (
	"context"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
)

// servers says of each server that is to run the network whether it does. One that is away is a failure when nobody stands in for it.
func (d *Doctor) servers(ctx context.Context) (found []Finding) {
	const check = "server"
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	away := 0
	for _, s := range network.ProbeServers(ctx, d.Config) {
		if s.Reason == "" {
			found = append(found, ok(check, "%s: %s", s.Address, s.String()))
			continue
		}
		away++
		fix := s.Hint
		if fix == "" {
			fix = "look at the server's log"
		}
		found = append(found, warn(check, fix, "%s", s.Reason))
	}
	if away < len(found) || d.Config.Remote.Fallback == config.Local {
		return found
	}
	for i := range found {
		found[i].Status = Fail
	}
	return found
}
