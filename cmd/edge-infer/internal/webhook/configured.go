package webhook

import (
	"errors"
	"path/filepath"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webpush"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// identityName is the file with the device's identity in the state directory.
const identityName = "webpush.key"

// OpenIdentity opens the identity by which push services know the device, or makes it.
func OpenIdentity(o *site.Outputs) (*webpush.Identity, error) {
	if o.State == "" {
		return nil, errors.New("notifications need a state directory (StateDirectory= in the unit, XDG_STATE_HOME or HOME)")
	}
	return webpush.OpenIdentity(filepath.Join(o.State, identityName))
}

// New returns the sender of a configured webhook. Its queue is in the state directory, if there is one.
func New(o *site.Outputs, w *config.Webhook) *Sender {
	s := &Sender{
		Name: w.Name, URL: w.URL, Device: o.Device, Format: w.Format, Secret: credentials.Secret(w.Secret), SecretFile: w.SecretFile,
		Filter: Filter(w.Filter),
	}
	if w.Format == config.WebPush {
		s.Identity = filepath.Join(o.State, identityName)
	}
	if o.State != "" {
		s.Spool = spool.Config{Directory: filepath.Join(o.State, "webhooks", spool.DirName(w.Name))}
	}
	return s
}
