package report

import (
	"errors"
	"io"
	"sync"
	"time"
)

// ErrUnread is the error of writing to somebody who does not read.
var ErrUnread = errors.New("standard output: nobody reads it, the last lines are lost")

// Output is a writer that can be hurried: a pipe that nobody reads would hold up whoever writes to it for ever. Any goroutine may use it.
type Output struct {
	out     io.Writer
	hurried sync.Once
	over    chan struct{} // closed when nobody is waited for any more

	mu     sync.Mutex // held while something is written
	text   []byte     // being written; given up with the goroutine that writes it
	asked  chan []byte
	answer chan error
}

// NewOutput writes to out. Close ends it.
func NewOutput(out io.Writer) *Output {
	o := &Output{out: out, over: make(chan struct{}), asked: make(chan []byte), answer: make(chan error, 1)}
	go func() {
		for text := range o.asked {
			_, err := out.Write(text)
			o.answer <- err
		}
	}()
	return o
}

// Write implements io.Writer. It keeps nothing of text.
func (o *Output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	select {
	case <-o.over:
		return 0, ErrUnread
	default:
	}
	o.text = append(o.text[:0], text...)
	o.asked <- o.text
	select {
	case err := <-o.answer:
		if err != nil {
			return 0, err
		}
		return len(text), nil
	case <-o.over:
		o.text = nil
		return 0, ErrUnread
	}
}

// Hurry gives the reader so much time for everything that is still to be written; what is not read by then is lost.
func (o *Output) Hurry(limit time.Duration) {
	o.hurried.Do(func() { time.AfterFunc(limit, func() { close(o.over) }) })
}

// Close ends the goroutine that writes. Nothing must be written any more.
func (o *Output) Close() error {
	close(o.asked)
	return nil
}
