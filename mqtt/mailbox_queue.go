package mqtt

import (
	"sync"
	"time"
)

// mailboxQueue is the list of boxes that wait for one sender.
type mailboxQueue struct {
	Wake chan struct{} // holds a token when there may be work

	mu    sync.Mutex
	ready []*mailbox
}

// newMailboxQueue is an empty one.
func newMailboxQueue() *mailboxQueue { return &mailboxQueue{Wake: make(chan struct{}, 1)} }

func (l *mailboxQueue) push(s *mailbox) {
	l.mu.Lock()
	l.ready = append(l.ready, s)
	l.mu.Unlock()
	l.Signal()
}

// Signal wakes the sender, also for messages outside the queue.
func (l *mailboxQueue) Signal() {
	select {
	case l.Wake <- struct{}{}:
	default:
	}
}

// Take returns the first box that is due, taken. With none due it returns how long until one is; a negative wait means that the list is
// empty.
func (l *mailboxQueue) Take(now time.Time) (*mailbox, time.Duration) {
	l.mu.Lock()
	var found *mailbox
	wait := time.Duration(-1)
	for i, s := range l.ready {
		if s.Interval > 0 {
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

// Len is how many boxes are listed.
func (l *mailboxQueue) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ready)
}
