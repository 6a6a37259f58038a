package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestClosed(t *testing.T) {
	for err, want := range map[error]bool{
		io.EOF: true, fmt.Errorf("read: %w", syscall.ECONNRESET): true, &net.OpError{Err: syscall.EPIPE}: true,
		errors.New("broker acknowledged nothing"): false, syscall.ETIMEDOUT: false,
	} {
		assert.Equal(t, want, Closed(err), "%v", err)
	}
}
