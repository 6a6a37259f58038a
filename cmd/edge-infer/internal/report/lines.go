// Package report shows a run to the person or program that started it: one block on a terminal, plain lines or JSON lines elsewhere.
// Nothing here holds the frame loop: text is written by a goroutine of its own.
package report

import (
	"io"
	"sync/atomic"
)

// Lines writes lines of text in the order they were given. A writer that does not keep up costs lines, not time, unless the caller asks to
// wait. One goroutine may call Add; Close waits until what was taken is written.
type Lines struct {
	full    chan []byte
	empty   chan []byte
	done    chan struct{}
	dropped atomic.Uint64
	err     atomic.Pointer[error]
}

// NewLines starts writing to out. Up to depth lines wait.
func NewLines(out io.Writer, depth int) *Lines {
	l := &Lines{full: make(chan []byte, depth), empty: make(chan []byte, depth), done: make(chan struct{})}
	for range depth {
		l.empty <- nil
	}
	go func() {
		defer close(l.done)
		for line := range l.full {
			if _, err := out.Write(line); err != nil && l.err.Load() == nil {
				l.err.Store(&err)
			}
			l.empty <- line
		}
	}()
	return l
}

// Add has build append one line, newline included, to a buffer that is used again later. With wait it blocks while the queue is full,
// without it drops the line and counts it.
func (l *Lines) Add(wait bool, build func(line []byte) []byte) {
	var line []byte
	if wait {
		line = <-l.empty
	} else {
		select {
		case line = <-l.empty:
		default:
			l.dropped.Add(1)
			return
		}
	}
	l.full <- build(line[:0])
}

// Dropped counts the lines that were lost because the writer did not keep up.
func (l *Lines) Dropped() uint64 { return l.dropped.Load() }

// Close writes what waits and returns the first error of the writer. Add must not be called any more.
func (l *Lines) Close() error {
	close(l.full)
	<-l.done
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}
