package mqtt

import "sync"

// Account says what became of the messages of one outgoing class since Open. Offered = Delivered + Dropped + Queued at every moment.
type Account struct {
	Offered   uint64 // handed over, including what the spool held at Open
	Delivered uint64 // QoS 0: written to the connection; QoS 1: acknowledged by the broker
	Dropped   uint64 // displaced by a newer message, over a cap, too old, or lost with the connection
	Queued    uint64 // waiting, or sent and not yet acknowledged
}

// Accounting is one Account per outgoing class.
type Accounting struct {
	Detections Account // per-frame detections and stats: newest wins, QoS 0
	State      Account // status, counts, settings, snapshots, discovery: newest wins, retained
	Events     Account // the durable queue
}

// ledger keeps an Account balanced: every change moves messages from one column to another.
type ledger struct {
	mu      sync.Mutex
	account Account
}

func (l *ledger) offer(n int) {
	l.mu.Lock()
	l.account.Offered += uint64(n)
	l.account.Queued += uint64(n)
	l.mu.Unlock()
}

func (l *ledger) deliver(n int) {
	l.mu.Lock()
	l.account.Queued -= uint64(n)
	l.account.Delivered += uint64(n)
	l.mu.Unlock()
}

func (l *ledger) drop(n int) {
	l.mu.Lock()
	l.account.Queued -= uint64(n)
	l.account.Dropped += uint64(n)
	l.mu.Unlock()
}

func (l *ledger) read() Account {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.account
}
