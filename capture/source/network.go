package source

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"syscall"
)

// maxRedirects is the number of redirects that are followed.
const maxRedirects = 5

var errRedirects = errors.New("more than 5 redirects")

// sameHost reports whether credentials for one address may be sent to the other.
func sameHost(a, b *url.URL) bool { return a.Hostname() == b.Hostname() }

// networkError returns a network error without addresses and ports: the camera's is known, and the local port changes with every attempt.
func networkError(err error) error {
	var number syscall.Errno
	var lookup *net.DNSError
	var connection *net.OpError
	switch {
	case errors.As(err, &number):
		return number
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return errors.New("unknown host name")
	case errors.As(err, &lookup):
		return errors.New("the DNS server does not answer")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return errNoAnswer
	case errors.As(err, &connection):
		return connection.Err
	}
	return err
}

var errNoAnswer = errors.New("no answer in time")
