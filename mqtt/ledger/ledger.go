// Package ledger accounts for every message.
package ledger

import "sync"

// Account counts the messages of one outgoing class since Open. Offered = Delivered + Superseded + Dropped + Queued at every moment; only
// state can be superseded.
type Account struct {
	Offered    uint64 `json:"offered"`    // queued, including the spool's events at Open
	Delivered  uint64 `json:"delivered"`  // QoS 0: written to the connection; QoS 1: acknowledged by the broker
	Superseded uint64 `json:"superseded"` // retained values replaced by a newer one before they were sent; no information is lost
	Dropped    uint64 `json:"dropped"`    // replaced by a newer frame's, over a limit, too old, lost with the connection or at the end
	Queued     uint64 `json:"queued"`     // waiting, or sent and not yet acknowledged
}

// Ledger keeps an Account balanced: every change moves messages from one column to another. The zero value is empty; any goroutine may use
// it.
type Ledger struct {
	mu      sync.Mutex
	account Account
}

// Offer adds n messages that were handed over.
func (l *Ledger) Offer(n int) {
	l.mu.Lock()
	l.account.Offered += uint64(n)
	l.account.Queued += uint64(n)
	l.mu.Unlock()
}

// Deliver records that n queued messages were delivered.
func (l *Ledger) Deliver(n int) {
	l.mu.Lock()
	l.account.Queued -= uint64(n)
	l.account.Delivered += uint64(n)
	l.mu.Unlock()
}

// Supersede records that newer values replaced n queued ones.
func (l *Ledger) Supersede(n int) {
	l.mu.Lock()
	l.account.Queued -= uint64(n)
	l.account.Superseded += uint64(n)
	l.mu.Unlock()
}

// Drop records that n queued messages were lost.
func (l *Ledger) Drop(n int) {
	l.mu.Lock()
	l.account.Queued -= uint64(n)
	l.account.Dropped += uint64(n)
	l.mu.Unlock()
}

// Read returns the current account.
func (l *Ledger) Read() Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.account
}
