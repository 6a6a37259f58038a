package report

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrUnread is the error of writing to somebody who does not read.
var ErrUnread = errors.New("standard output is not being read, the last lines are lost")

// Output is a writer that can be hurried: a pipe that nobody reads would hold up whoever writes to it for ever. Any goroutine may use it.
type Output struct {
	deadlineSet  chan struct{} // closed when a write may no longer wait for ever
	deadlineOnce sync.Once
	limit        time.Duration // that it may wait then; set before hurry is closed

	mu       sync.Mutex    // held while something is written
	unread   bool          // nobody is waited for any more
	waited   time.Duration // since it was hurried
	text     []byte        // being written; given up with the goroutine that writes it
	requests chan []byte
	results  chan error
}

// NewOutput writes to out. Close ends it.
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

// Write implements io.Writer. It keeps nothing of text.
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

// maxLimits is how many times its limit a hurried reader may take for everything.
const maxLimits = 10

// Hurry gives the reader so much time for each piece that is still to be written, and ten times as much for all. When one is not read by
// then, it and all that follow are lost.
func (o *Output) Hurry(limit time.Duration) {
	o.deadlineOnce.Do(func() {
		o.limit = limit
		close(o.deadlineSet)
	})
}

// Close ends the goroutine that writes. What is written later, by a logger for instance, is lost.
func (o *Output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unread = true
	close(o.requests)
	return nil
}
