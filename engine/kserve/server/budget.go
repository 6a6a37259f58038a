package server

import (
	"sync/atomic"

	"github.com/edge-infer/edge-infer/engine/kserve"
)

// DefaultBudget is the Max of a zero Budget.
const DefaultBudget = 1 << 30

// Budget bounds the bytes of all requests that are being read or answered. Set Max first; all methods may be called from any goroutine.
type Budget struct {
	Max int64 // 0 for DefaultBudget

	used    atomic.Int64
	refused atomic.Uint64
}

// Used returns the bytes that requests hold at present.
func (b *Budget) Used() int64 { return b.used.Load() }

// Refused returns the number of requests for which there was no room.
func (b *Budget) Refused() uint64 { return b.refused.Load() }

// lease is the part of the budget that one request uses.
type lease struct {
	budget *Budget
	bytes  int64
}

// grow extends the lease to so many bytes, or returns an error for the client.
func (l *lease) grow(bytes int64) error {
	limit := l.budget.Max
	if limit == 0 {
		limit = DefaultBudget
	}
	if l.budget.used.Add(bytes-l.bytes) > limit {
		l.budget.used.Add(l.bytes - bytes)
		l.budget.refused.Add(1)
		return kserve.Statusf(kserve.ResourceExhausted,
			"requests of %d bytes are in flight already, the server takes %d (serve --max-in-flight raises that)", l.budget.Used(), limit)
	}
	l.bytes = bytes
	return nil
}

// end gives the bytes back.
func (l *lease) end() { l.budget.used.Add(-l.bytes) }
