package capture

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
)

// MaxRedirects is the number of redirects that a camera may answer with before ErrRedirects.
const MaxRedirects = 5

// ErrRedirects reports a camera that redirects more than MaxRedirects times.
var ErrRedirects = errors.New("more than 5 redirects")

// SameHost reports whether credentials for one address may be sent to the other.
func SameHost(a, b *url.URL) bool { return a.Hostname() == b.Hostname() }

var errNoAnswer = errors.New("no answer in time")

// NetworkCause returns the cause of a network error without addresses and ports: the camera's is known, and the local port changes with
// every attempt.
func NetworkCause(err error) error {
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

// Denied returns the error for missing or refused credentials; given reports whether any were sent, status is the camera's answer, as in
// "401 Unauthorized".
func (u URI) Denied(given bool, status string) *Error {
	switch {
	case !given:
		return u.NewError("open", ErrDenied, "the camera requires a user name and password",
			"write them as "+u.Scheme()+"://USER:PASSWORD@HOST/PATH", nil)
	case strings.HasPrefix(status, "403"):
		const hint = "check the user's permissions and whether the account is locked"
		return u.NewError("open", ErrDenied, "the camera denies access ("+status+")", hint, nil)
	}
	const hint = "correct them in the URI, percent-encoded; retries are rare so that the camera does not lock the account"
	return u.NewError("open", ErrDenied, "the camera refused user name or password", hint, nil)
}
