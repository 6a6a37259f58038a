// Package report prints the results of a run: a block on a terminal, plain lines or JSON lines elsewhere. A separate goroutine writes the
// text, so that the frame loop is never blocked.
package report

import (
	"io"
	"sync/atomic"
)

// Lines writes lines of text in order. Lines are dropped if the writer does not keep up, unless the caller waits. Add must be called by one
// goroutine at a time; Close waits until all queued lines are written.
type Lines struct {
	full    chan []byte
	empty   chan []byte
	done    chan struct{}
	dropped atomic.Uint64
	err     atomic.Pointer[error]
}

// NewLines returns Lines that writes to out and queues up to depth lines.
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

// Add queues one line, which build appends, newline included, to a reused buffer. While the queue is full, Add blocks if wait is set;
// otherwise it drops and counts the line.
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

// Dropped returns the number of dropped lines.
func (l *Lines) Dropped() uint64 { return l.dropped.Load() }

// Close writes the queued lines and returns the first error of the writer. Add must not be called afterwards.
func (l *Lines) Close() error {
	close(l.full)
	<-l.done
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}
