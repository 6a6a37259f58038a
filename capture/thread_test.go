package capture

import (
	"context"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// endless is a source that reports the thread on which it is read; it ends after a few images for which there is no buffer.
type endless struct {
	live    bool
	reads   int
	threads map[int]bool
}

func (e *endless) Live() bool   { return e.live }
func (e *endless) FPS() float64 { return 1000 }
func (e *endless) Close() error { return nil }

func (e *endless) Next(Lender) (Frame, error) {
	e.threads[unix.Gettid()] = true
	if e.reads++; e.reads == 20 {
		return Frame{}, io.EOF
	}
	return Frame{}, ErrNoBuffer // counted as dropped; the next image is requested
}

// TestSetupThreadOfLiveSource: a live source is read by one thread, for which SetupThread is called; a file by any thread, without a call.
func TestSetupThreadOfLiveSource(t *testing.T) {
	for _, live := range []bool{true, false} {
		var entered atomic.Int64
		var told int
		source := &endless{live: live, threads: map[int]bool{}}
		c := &Camera{
			Name: "gate", URI: "/dev/video0", Once: true,
			Open:        func(context.Context, string, Options) (Source, error) { return source, nil },
			SetupThread: func() { entered.Add(1); told = unix.Gettid() },
		}
		_ = c.Run(t.Context()) // no image came, whatever it makes of that
		require.NoError(t, c.Close())
		if live {
			assert.Equal(t, map[int]bool{told: true}, source.threads)
			assert.Equal(t, int64(1), entered.Load())
		} else {
			assert.Zero(t, entered.Load())
		}
	}
}
