package state

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine/standby"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// Servers are the inference servers that run the network, and the local standby.
type Servers struct {
	triton.Status
	Standby *standby.Status // nil where nothing stands by
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
