package webhook

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// CheckSecret returns an error unless the signing secret or the access token can be read and used. The sender need not be open.
func (s *Sender) CheckSecret() error {
	if s.Format == config.Ntfy {
		_, err := credentials.ReadSecret(s.Secret, s.SecretFile)
		return err
	}
	_, err := s.signer()
	return err
}

// Reach connects to the receiver, with TLS where the address has it, and sends nothing. Where a proxy stands between, it is not known
// whether the receiver is there, and the error is nil. The sender need not be open.
func (s *Sender) Reach(ctx context.Context) error {
	to, err := url.Parse(s.URL)
	if err != nil {
		return errors.New("its url cannot be read")
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: to})
	if err != nil || proxy != nil {
		return err
	}
	dialer := &net.Dialer{}
	var connection net.Conn
	if to.Scheme == "https" {
		secure := tls.Dialer{NetDialer: dialer}
		connection, err = secure.DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), cmp.Or(to.Port(), "443")))
	} else {
		connection, err = dialer.DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), cmp.Or(to.Port(), "80")))
	}
	if err != nil {
		return err
	}
	return connection.Close()
}
