package serve

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// credentials are the token file and the certificate of a server. Load reads them, also again; its other methods may be called from any
// goroutine.
type credentials struct {
	tokenFile, certificate, key string
	logger                      *slog.Logger

	control atomic.Pointer[access.Control]
	pair    atomic.Pointer[tls.Certificate]
}

// Load reads the files. On an error everything stays as it was.
func (c *credentials) Load() error {
	control := &access.Control{Logger: c.logger}
	if c.tokenFile != "" {
		text, err := boundedfile.Read(c.tokenFile, boundedfile.Small)
		if err != nil {
			return fmt.Errorf("token: %w", err)
		}
		if control.Tokens, err = access.ParseTokens(string(text)); err != nil {
			return err
		}
		if len(control.Tokens) == 0 {
			return fmt.Errorf("token: %s is empty (write one into it: openssl rand -hex 24)", c.tokenFile)
		}
		if err := control.Check("", true); err != nil {
			return fmt.Errorf("%s: %w", c.tokenFile, err)
		}
	}
	if err := control.Open(); err != nil {
		return err
	}
	if c.certificate != "" {
		pair, err := boundedfile.KeyPair(c.certificate, c.key)
		if err != nil {
			return fmt.Errorf("certificate %s: %w", c.certificate, err)
		}
		c.pair.Store(&pair)
	}
	c.control.Store(control)
	return nil
}

// tls returns the server's settings for TLS; nil without a certificate.
func (c *credentials) tls() *tls.Config {
	if c.certificate == "" {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.pair.Load(), nil },
	}
}

// allow reports whether a request may be answered: the role metrics may read, every other one may also run the model.
func (c *credentials) allow(r *http.Request) bool {
	least := access.RoleMetrics
	if strings.HasSuffix(r.URL.Path, "/infer") || strings.HasSuffix(r.URL.Path, "/ModelInfer") {
		least = access.RoleView
	}
	if c.control.Load().Role(r) < least {
		return false
	}
	access.MarkAuthenticated(r)
	return true
}
