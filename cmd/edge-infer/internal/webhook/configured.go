package webhook

import (
	"path/filepath"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// New returns the sender of a configured webhook. Its queue is in the state directory, if there is one.
func New(c *config.Config, w *config.Webhook) *Sender {
	s := &Sender{
		Name: w.Name, URL: w.URL, Device: c.Name, Format: w.Format, Secret: credentials.Secret(w.Secret), SecretFile: w.SecretFile,
		Filter: Filter(w.Filter),
	}
	if c.State != "" {
		s.Spool = spool.Config{Directory: filepath.Join(c.State, "webhooks", spool.DirName(w.Name))}
	}
	return s
}
