package server

import (
	"errors"

	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

// grow extends what a request holds to so many bytes, or returns an error for the client.
func grow(memory *inflight.Lease, bytes int64) error {
	err := memory.Grow(bytes)
	if over, ok := errors.AsType[*inflight.Error](err); ok {
		return kserve.Statusf(kserve.ResourceExhausted, "%v", over)
	}
	return err
}
