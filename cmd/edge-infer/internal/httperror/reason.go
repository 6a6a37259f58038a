// Package httperror makes errors of HTTP clients fit for logs and status.
package httperror

import (
	"errors"
	"fmt"
	"net"
	"net/url"
)

// Reason returns why a request failed: an error of package http without the address, which may contain secrets, and without the number of
// the local port, which changes. peer describes the server in the error about a timeout. Other errors, and nil, are returned unchanged.
func Reason(err error, peer string) error {
	var of *url.Error
	if !errors.As(err, &of) {
		return err
	}
	if of.Timeout() {
		return fmt.Errorf("%s does not answer in time", peer)
	}
	var network *net.OpError
	if errors.As(of.Err, &network) {
		plain := *network
		plain.Source = nil
		return &plain
	}
	return of.Err
}
