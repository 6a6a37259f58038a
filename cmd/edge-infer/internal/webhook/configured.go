package webhook

import (
	"path/filepath"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// New returns the sender of a configured webhook. Its queue is in the state directory, if there is one.
func New(o *site.Outputs, w *config.Webhook) *Sender {
	s := &Sender{
		Name: w.Name, URL: w.URL, Device: o.Device, Format: w.Format, Secret: credentials.Secret(w.Secret), SecretFile: w.SecretFile,
		Filter: Filter(w.Filter),
	}
	if o.State != "" {
		s.Spool = spool.Config{Directory: filepath.Join(o.State, "webhooks", spool.DirName(w.Name))}
	}
	return s
}
