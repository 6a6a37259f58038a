package report

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrUnread is returned by Write after the reader has missed the deadline.
var ErrUnread = errors.New("standard output is not being read, the last lines are lost")

// Output is a writer with a deadline that can be set at shutdown: writing to a pipe that is not read would block forever. It is safe for
// concurrent use.
type Output struct {
	deadlineSet  chan struct{} // closed by Hurry
	deadlineOnce sync.Once
	limit        time.Duration // timeout of one write; set before deadlineSet is closed

	mu       sync.Mutex    // held during a write
	unread   bool          // the reader missed the deadline
	waited   time.Duration // since Hurry
	text     []byte        // being written; abandoned with a blocked goroutine
	requests chan []byte
	results  chan error
}

// NewOutput returns an Output that writes to out until Close.
func NewOutput(out io.Writer) *Output {
	o := &Output{deadlineSet: make(chan struct{}), requests: make(chan []byte), results: make(chan error, 1)}
	go func() {
		for text := range o.requests {
			_, err := out.Write(text)
			o.results <- err
		}
	}()
	return o
}

// Write implements io.Writer. It does not retain text.
func (o *Output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unread {
		return 0, ErrUnread
	}
	o.text = append(o.text[:0], text...)
	o.requests <- o.text
	select {
	case err := <-o.results:
		return written(text, err)
	case <-o.deadlineSet:
	}
	begun := time.Now()
	timer := time.NewTimer(min(o.limit, maxLimits*o.limit-o.waited))
	defer timer.Stop()
	select {
	case err := <-o.results:
		o.waited += time.Since(begun)
		return written(text, err)
	case <-timer.C:
		o.unread, o.text = true, nil
		return 0, ErrUnread
	}
}

func written(text []byte, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return len(text), nil
}

// maxLimits bounds the total time after Hurry, in limits.
const maxLimits = 10

// Hurry sets the timeout of each remaining write, and ten times as much for all of them. A write that misses it and all later ones are
// lost.
func (o *Output) Hurry(limit time.Duration) {
	o.deadlineOnce.Do(func() {
		o.limit = limit
		close(o.deadlineSet)
	})
}

// Close ends the writing goroutine. Later writes return ErrUnread.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unread = true
	close(o.requests)
	return nil
}
