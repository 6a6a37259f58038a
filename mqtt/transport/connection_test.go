package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestClosed(t *testing.T) {
	for err, want := range map[error]bool{
		io.EOF: true, fmt.Errorf("read: %w", syscall.ECONNRESET): true, &net.OpError{Err: syscall.EPIPE}: true,
		errors.New("broker acknowledged nothing"): false, syscall.ETIMEDOUT: false,
	} {
		assert.Equal(t, want, Closed(err), "%v", err)
	}
}

// brokenPipe is a connection that the other side has closed: writing fails, and reading ends when the connection is closed here.
type brokenPipe struct {
	net.Conn
	closed chan struct{}
}

func (b *brokenPipe) Read([]byte) (int, error) {
	<-b.closed
	return 0, net.ErrClosed
}

func (b *brokenPipe) Write([]byte) (int, error)        { return 0, syscall.EPIPE }
func (b *brokenPipe) SetWriteDeadline(time.Time) error { return nil }
func (b *brokenPipe) Close() error                     { close(b.closed); return nil }

// TestAFailedWriteIsTheReason: the reader of a connection that is closed because of a failed write does not report first that it was
// closed.
func TestAFailedWriteIsTheReason(t *testing.T) {
	reasons := make(chan error, 2)
	broken := &brokenPipe{closed: make(chan struct{})}
	c := New(broken, time.Minute, 1<<20, nil, func(err error) {
		if errors.Is(err, syscall.EPIPE) {
			select {
			case <-broken.closed:
				t.Error("the connection was closed before")
			default:
			}
		}
		reasons <- err
	})
	go func() { _, _ = c.Read(make([]byte, 1)) }()
	_, err := c.Write([]byte{1})
	require.ErrorIs(t, err, syscall.EPIPE)
	require.ErrorIs(t, <-reasons, syscall.EPIPE)
	require.ErrorIs(t, <-reasons, net.ErrClosed)
}
