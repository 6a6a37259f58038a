package engine

import (
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// Memory allocates page-aligned buffers outside the Go heap, so that C code may keep pointers into them; Engine.Alloc uses it without a
// GPU. The zero value is ready for use; all methods may be called from any goroutine.
type Memory struct {
	mu     sync.Mutex
	mapped map[*byte][]byte // by first byte
	closed bool
}

// Alloc returns a zeroed buffer of size bytes, valid until Free or Close.
func (m *Memory) Alloc(size int) (*Buffer, error) {
	if size < 1 {
		return nil, &Error{Op: "alloc", Kind: ErrShape, Message: fmt.Sprintf("%d bytes asked for", size)}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, &Error{Op: "alloc", Kind: ErrClosed, Message: "the engine is closed"}
	}
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, &Error{Op: "alloc", Message: fmt.Sprintf("%d bytes", size), Err: err}
	}
	if m.mapped == nil {
		m.mapped = map[*byte][]byte{}
	}
	m.mapped[&data[0]] = data
	return NewBuffer(data, func() { m.free(&data[0]) }), nil
}

// free unmaps one buffer, unless Close came first.
func (m *Memory) free(first *byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if data, ok := m.mapped[first]; ok {
		delete(m.mapped, first)
		_ = unix.Munmap(data) // fails only for an address that was never mapped
	}
}

// Close frees all remaining buffers.
func (m *Memory) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for first, data := range m.mapped {
		delete(m.mapped, first)
		_ = unix.Munmap(data)
	}
}
