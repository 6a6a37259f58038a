package device

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/standby"
	"github.com/edge-infer/edge-infer/engine/triton"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Servers are the inference servers that run the network, and the local standby.
type Servers struct {
	triton.Status
	Standby *standby.Status // nil where nothing stands by
}

// Servers returns the servers of the first device; nil for a local network and for one that is not open yet.
func (s *Set) Servers() *Servers {
	networks := predict.Networks(s.All[0].Running())
	if len(networks) == 0 {
		return nil
	}
	var servers Servers
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

// Trouble lists the problems of the servers, each preceded by a semicolon; empty if there are none.
func (s *Servers) Trouble() (text string) {
	if s == nil {
		return ""
	}
	for _, server := range s.Servers {
		if !server.Healthy {
			text += fmt.Sprintf("; server %s is suspended: %s", server.Address, server.Reason)
		}
	}
	if s.Standby != nil && s.Standby.Local {
		text += "; the engine here serves"
		if len(s.Servers) == 0 {
			text += ": " + s.Standby.Reason
		}
	}
	return text
}
