// Package lending keeps a predictor open as long as cameras hold memory of it.
package lending

import (
	"sync"

	"github.com/edge-infer/edge-infer/engine"
)

// Lender is an open predictor as its memory is concerned.
type Lender interface {
	Alloc(size int) (*engine.Buffer, error)
	Close() error
}

// Memory lends cameras a predictor's memory, and keeps the predictor open until the last buffer of it has come back.
type Memory struct {
	mu      sync.Mutex
	current *lending
	lent    int64 // bytes that are out, of earlier predictors too
}

// lending is one predictor with the buffers that are out.
type lending struct {
	Lender
	buffers int
	held    bool // a call into it has not returned
	retired bool
}

// Alloc is a capture.Alloc.
func (m *Memory) Alloc(size int) ([]byte, func(), error) {
	m.mu.Lock()
	from := m.current
	from.buffers++
	m.mu.Unlock()
	buffer, err := from.Alloc(size)
	if err != nil {
		m.release(from)
		return nil, nil, err
	}
	m.count(size)
	return buffer.Data, func() {
		buffer.Free()
		m.count(-size)
		m.release(from)
	}, nil
}

func (m *Memory) count(bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lent += int64(bytes)
}

// Lent is how many bytes the cameras hold at the moment.
func (m *Memory) Lent() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lent
}

func (m *Memory) release(from *lending) {
	m.mu.Lock()
	from.buffers--
	over := from.retired && from.buffers == 0
	m.mu.Unlock()
	if over {
		_ = from.Close()
	}
}

// Lend gives out another predictor's memory from now on. The one before is closed as soon as nothing of it is out.
func (m *Memory) Lend(next Lender) {
	m.mu.Lock()
	old := m.current
	m.current = &lending{Lender: next}
	over := false
	if old != nil {
		old.retired = true
		over = old.buffers == 0
	}
	m.mu.Unlock()
	if over {
		_ = old.Close()
	}
}

// Hold keeps the predictor in use open, whatever else happens, until returned is called: a call into it has not returned.
func (m *Memory) Hold() (returned func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.current
	held.buffers++
	held.held = true
	return func() { m.release(held) }
}

// Close closes the predictor in use, or lets it be closed when a call into it has returned. The cameras must be closed before.
func (m *Memory) Close() error {
	m.mu.Lock()
	last := m.current
	m.current = nil
	waits := last != nil && last.held && last.buffers > 0
	if waits {
		last.retired = true
	}
	m.mu.Unlock()
	if last == nil || waits {
		return nil
	}
	return last.Close()
}
