package capture

import "sync/atomic"

// Mailbox holds the newest frame of one camera. One goroutine puts, one takes. The zero value is ready.
type Mailbox struct {
	// Notify is called after every Put and must not block: the Ring of one Bell shared by several mailboxes wakes the goroutine that gathers
	// from all of them. Nil for none.
	Notify func()

	newest    atomic.Pointer[buffer]
	dropped atomic.Uint64
}

// Put leaves the frame for the consumer. An older one that is still there is released and counted.
func (m *Mailbox) Put(f Frame) {
	b := f.buffer
	if b == nil {
		b = &buffer{} // a frame that came from no pool
	}
	b.frame = f
	if old := m.newest.Swap(b); old != nil {
		m.dropped.Add(1)
		old.frame.Release()
	}
	if m.Notify != nil {
		m.Notify()
	}
}

// Take hands over the newest frame, which the caller releases; false when there is no new one.
func (m *Mailbox) Take() (Frame, bool) {
	b := m.newest.Swap(nil)
	if b == nil {
		return Frame{}, false
	}
	return b.frame, true
}

// Full reports whether a frame waits.
func (m *Mailbox) Full() bool { return m.newest.Load() != nil }

// Drop releases the frame that waits and counts it, so that its buffer can take a newer one. It reports whether there was one.
func (m *Mailbox) Drop() bool {
	f, ok := m.Take()
	if ok {
		m.dropped.Add(1)
		f.Release()
	}
	return ok
}

// Dropped counts the frames that no consumer took.
func (m *Mailbox) Dropped() uint64 { return m.dropped.Load() }
