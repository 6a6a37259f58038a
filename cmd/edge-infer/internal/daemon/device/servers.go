package device

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/standby"
	"github.com/edge-infer/edge-infer/engine/triton"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Servers returns the servers of the first device; nil for a local network and for one that is not open yet.
func (s *Set) Servers() *state.Servers {
	networks := predict.Networks(s.All[0].Running())
	if len(networks) == 0 {
		return nil
	}
	var servers state.Servers
	e := networks[0].Engine()
	if two, ok := e.(*standby.Engine); ok {
		status := two.Status()
		servers.Standby, e = &status, two.Unwrap()
	}
	if remote, ok := e.(interface {
		engine.Engine
		Status() triton.Status
	}); ok {
		servers.Status = remote.Status()
	} else if servers.Standby == nil {
		return nil
	}
	return &servers
}
