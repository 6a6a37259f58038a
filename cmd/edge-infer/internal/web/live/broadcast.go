package live

import "sync"

// broadcast wakes all waiting goroutines. The zero value is ready.
type broadcast struct {
	mutex sync.Mutex
	next  chan struct{}
}

// wait returns a channel that is closed by the next signal.
func (b *broadcast) wait() <-chan struct{} {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *broadcast) signal() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
