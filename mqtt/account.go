package mqtt

import "sync"

// Account says what became of the messages of one outgoing class since Open. Offered = Delivered + Superseded + Dropped + Queued at every
// moment; only state can be superseded.
type Account struct {
	Offered    uint64 `json:"offered"`    // handed over, including what the spool held at Open
	Delivered  uint64 `json:"delivered"`  // QoS 0: written to the connection; QoS 1: acknowledged by the broker
	Superseded uint64 `json:"superseded"` // retained values that a newer one replaced before they were sent: nothing is lost by it
	Dropped    uint64 `json:"dropped"`    // displaced by a newer frame's, over a cap, too old, or lost with the connection
	Queued     uint64 `json:"queued"`     // waiting, or sent and not yet acknowledged
}

// Accounting is one Account per outgoing class.
type Accounting struct {
	Detections Account `json:"detections"` // per-frame detections and stats: newest wins, QoS 0
	State      Account `json:"state"`      // status, counts, settings, snapshots, discovery: newest wins, retained
	Events     Account `json:"events"`     // the durable queue
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

func (l *ledger) supersede(n int) {
	l.mu.Lock()
	l.account.Queued -= uint64(n)
	l.account.Superseded += uint64(n)
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
