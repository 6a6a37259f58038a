package capture

import "sync/atomic"

// Mailbox holds the newest frame of one camera, for one producer and one consumer. The zero value is ready.
type Mailbox struct {
	// Notify is called after every Put and must not block. The Signal method of a Wakeup shared by several mailboxes wakes the goroutine
	// that gathers from all of them. May be nil.
	Notify func()

	newest  atomic.Pointer[buffer]
	dropped atomic.Uint64
}

// Put stores a frame for the consumer. A frame that has not been taken is released and counted as dropped.
func (m *Mailbox) Put(f Frame) {
	b := f.buffer
	if b == nil {
		b = &buffer{} // not from a pool
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

// Take returns the newest frame, which the caller releases, or false if there is no new one.
func (m *Mailbox) Take() (Frame, bool) {
	b := m.newest.Swap(nil)
	if b == nil {
		return Frame{}, false
	}
	return b.frame, true
}

// Full reports whether a frame is waiting.
func (m *Mailbox) Full() bool { return m.newest.Load() != nil }

// Drop releases and counts the waiting frame, so that its buffer can take a newer one. It reports whether there was one.
func (m *Mailbox) Drop() bool {
	f, ok := m.Take()
	if ok {
		m.dropped.Add(1)
		f.Release()
	}
	return ok
}

// Dropped returns the number of frames that were not taken.
func (m *Mailbox) Dropped() uint64 { return m.dropped.Load() }
