package source

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"syscall"
)

// maxRedirects is how often a server may send a request elsewhere before the try counts as failed.
const maxRedirects = 5

var errRedirects = errors.New("the server redirects in a circle, or more than 5 times")

// sameHost reports whether what is meant for one address, such as a password, may go to the other.
func sameHost(a, b *url.URL) bool { return a.Hostname() == b.Hostname() }

// networkError leaves addresses and ports out of a network error: the camera's is known, and the port of this side changes with every try.
func networkError(err error) error {
	var number syscall.Errno
	var lookup *net.DNSError
	var connection *net.OpError
	switch {
	case errors.As(err, &number):
		return number
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return errors.New("the host name is unknown")
	case errors.As(err, &lookup):
		return errors.New("the name server does not answer")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return errNoAnswer
	case errors.As(err, &connection):
		return connection.Err
	}
	return err
}

var errNoAnswer = errors.New("no answer in time")
