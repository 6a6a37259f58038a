package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/httperror"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// Endpoint takes signed messages as Standard Webhooks specifies. Its methods may be called from any goroutine.
type Endpoint struct {
	URL string // it may contain secrets and is in no error
	// Secret signs the messages, whsec_ and base64; SecretFile is a file that holds it and is read for each message.
	Secret     credentials.Secret
	SecretFile string
	Version    string // of this program, for the User-Agent
	Client     *http.Client
}

// NewClient returns a client of an endpoint that takes redirects for failures, as the standard does.
func NewClient(connections int, timeout time.Duration) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxConnsPerHost = connections
	transport.MaxIdleConnsPerHost = connections
	return &http.Client{
		Transport: transport, Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Post sends a signed body. Errors do not contain the address, which may be secret.
func (e *Endpoint) Post(ctx context.Context, id string, body []byte) (*http.Response, error) {
	hook, err := e.signer()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	signature, err := hook.Sign(id, now, body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return nil, httperror.Reason(err, "the receiver")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "edge-infer/"+e.Version)
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	answer, err := e.Client.Do(request)
	return answer, httperror.Reason(err, "the receiver")
}

// signer reads the signing secret.
func (e *Endpoint) signer() (*standardwebhooks.Webhook, error) {
	text, err := credentials.ReadSecret(e.Secret, e.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("signing secret: %w", err)
	}
	hook, err := ParseSecret(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("signing secret: %w", err)
	}
	return hook, nil
}

// CheckSecret returns an error unless the signing secret can be read and used.
func (e *Endpoint) CheckSecret() error {
	_, err := e.signer()
	return err
}

// Reach connects to the receiver, with TLS where the address has it, and sends nothing. Where a proxy stands between, it is not known
// whether the receiver is there, and the error is nil.
func (e *Endpoint) Reach(ctx context.Context) error {
	to, err := url.Parse(e.URL)
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
