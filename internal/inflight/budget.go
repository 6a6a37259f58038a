// Package inflight bounds the bytes that others can make a part of the program hold at a time.
package inflight

import (
	"fmt"
	"sync/atomic"
)

// Budget bounds the bytes that are held. Set the exported fields first; all methods may be called from any goroutine.
type Budget struct {
	Max     int64  // bytes; 0 means no limit
	Setting string // raises Max, for errors

	used    atomic.Int64
	refused atomic.Uint64
}

// Error is returned for what does not fit into a budget.
type Error struct {
	Used, Max int64 // bytes
	Setting   string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("too much memory is in use: %d bytes of %d (%s raises the limit)", e.Used, e.Max, e.Setting)
}

// Reserve adds bytes to those that are held, or returns an *Error. Release gives them back.
func (b *Budget) Reserve(bytes int64) error {
	used := b.used.Add(bytes)
	if b.Max > 0 && used > b.Max {
		b.used.Add(-bytes)
		b.refused.Add(1)
		return &Error{Used: used - bytes, Max: b.Max, Setting: b.Setting}
	}
	return nil
}

// Release gives bytes back.
func (b *Budget) Release(bytes int64) { b.used.Add(-bytes) }

// Stats is the state of a budget.
type Stats struct {
	Used    int64  `json:"bytes"`
	Max     int64  `json:"max_bytes"`
	Refused uint64 `json:"refused"` // what did not fit, since the start
}

// Stats returns the current state.
func (b *Budget) Stats() Stats { return Stats{b.used.Load(), b.Max, b.refused.Load()} }

// Lease is what one request holds of a budget. It must not be used by several goroutines at a time.
type Lease struct {
	Budget *Budget
	bytes  int64
}

// Grow extends the lease to at least so many bytes. After an *Error it is as before.
func (l *Lease) Grow(bytes int64) error {
	if bytes <= l.bytes {
		return nil
	}
	if err := l.Budget.Reserve(bytes - l.bytes); err != nil {
		return err
	}
	l.bytes = bytes
	return nil
}

// Add extends the lease by so many bytes. After an *Error it is as before.
func (l *Lease) Add(bytes int64) error { return l.Grow(l.bytes + bytes) }

// End gives all bytes back.
func (l *Lease) End() {
	l.Budget.Release(l.bytes)
	l.bytes = 0
}
