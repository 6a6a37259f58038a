package mqtt

import (
	"sync"
	"time"
)

// sendQueue is the list of mailboxes that wait for one sender.
type sendQueue struct {
	wake chan struct{} // holds a token when there may be work

	mu    sync.Mutex
	ready []*mailbox
}

func newSendQueue() *sendQueue { return &sendQueue{wake: make(chan struct{}, 1)} }

func (l *sendQueue) push(s *mailbox) {
	l.mu.Lock()
	l.ready = append(l.ready, s)
	l.mu.Unlock()
	l.signal()
}

func (l *sendQueue) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take returns the first mailbox that is due, taken. With none due it returns how long until one is; a negative wait means that the list is
// empty.
func (l *sendQueue) take(now time.Time) (*mailbox, time.Duration) {
	l.mu.Lock()
	var found *mailbox
	wait := time.Duration(-1)
	for i, s := range l.ready {
		if s.interval > 0 {
			if left := s.remaining(now); left > 0 {
				if wait < 0 || left < wait {
					wait = left
				}
				continue
			}
		}
		found = s
		copy(l.ready[i:], l.ready[i+1:])
		l.ready = l.ready[:len(l.ready)-1]
		break
	}
	l.mu.Unlock()
	if found == nil {
		return nil, wait
	}
	found.take()
	return found, 0
}

func (l *sendQueue) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ready) == 0
}
