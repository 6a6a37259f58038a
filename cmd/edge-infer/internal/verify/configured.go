package verify

import (
	"path/filepath"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// New returns the gate of the configured service, nil if there is none. Its journal is in the state directory, if there is one.
func New(settings *site.Outputs) *Gate {
	v := &settings.Verify
	if v.URL == "" {
		return nil
	}
	g := &Gate{
		Endpoint: webhook.Endpoint{URL: v.URL, Secret: credentials.Secret(v.Secret), SecretFile: v.SecretFile},
		Device:   settings.Device, Timeout: v.Timeout, Cameras: v.Cameras, Labels: v.Labels, Drop: v.Otherwise == config.Drop,
	}
	if settings.State != "" {
		g.Journal = spool.Config{Directory: filepath.Join(settings.State, "verify")}
	}
	return g
}
