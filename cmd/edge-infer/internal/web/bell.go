package web

import "sync"

// bell wakes everyone who listens. The zero value is ready.
type bell struct {
	mutex sync.Mutex
	rung  chan struct{}
}

// listen gives a channel that is closed at the next ring.
func (b *bell) listen() <-chan struct{} {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.rung == nil {
		b.rung = make(chan struct{})
	}
	return b.rung
}

func (b *bell) ring() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.rung != nil {
		close(b.rung)
		b.rung = nil
	}
}
