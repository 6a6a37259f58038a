package capture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

// TestNetworkCause: errors must not contain addresses and ports, which change from attempt to attempt.
func TestNetworkCause(t *testing.T) {
	address := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 554}
	failed := func(op string, err error) error {
		return &net.OpError{Op: op, Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 43210}, Addr: address, Err: err}
	}
	for want, err := range map[string]error{
		"connection refused":             failed("dial", os.NewSyscallError("connect", unix.ECONNREFUSED)),
		"connection reset by peer":       &url.Error{Op: "Get", URL: "http://cam/", Err: failed("read", unix.ECONNRESET)},
		"no route to host":               fmt.Errorf("wrapped: %w", failed("dial", os.NewSyscallError("connect", unix.EHOSTUNREACH))),
		"unknown host name":              failed("dial", &net.DNSError{Err: "no such host", Name: "cam", IsNotFound: true}),
		"the DNS server does not answer": failed("dial", &net.DNSError{Err: "i/o timeout", Name: "cam", Server: "10.0.0.1:53", IsTimeout: true}),
		"no answer in time":              failed("read", os.ErrDeadlineExceeded),
		"tls: bad record MAC":            failed("local error", errors.New("tls: bad record MAC")),
		"something else":                 errors.New("something else"),
	} {
		assert.EqualError(t, NetworkCause(err), want)
	}
	assert.Equal(t, errNoAnswer, NetworkCause(context.DeadlineExceeded))
}
