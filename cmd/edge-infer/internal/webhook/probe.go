package webhook

import (
	"context"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webpush"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// endpoint is the receiver. Its client is nil unless the sender is open.
func (s *Sender) endpoint() *Endpoint {
	return &Endpoint{URL: s.URL, Secret: s.Secret, SecretFile: s.SecretFile, Version: s.Version, Client: s.client}
}

// CheckSecret returns an error unless the signing secret, access token or keys of a browser can be read and used. The sender need not be
// open.
func (s *Sender) CheckSecret() error {
	switch s.Format {
	case config.Ntfy:
		_, err := credentials.ReadSecret(s.Secret, s.SecretFile)
		return err
	case config.WebPush:
		_, err := webpush.ParseKeys(string(s.Secret))
		return err
	}
	return s.endpoint().CheckSecret()
}

// Reach is Endpoint.Reach. The sender need not be open.
func (s *Sender) Reach(ctx context.Context) error { return s.endpoint().Reach(ctx) }
