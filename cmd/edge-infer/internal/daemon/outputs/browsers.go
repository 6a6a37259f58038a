package outputs

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
)

// browsers are the browsers that get notifications, as the page changes them: each is a webhook that the reload that follows opens.
type browsers struct {
	config.Browsers
	of *Outputs
}

var _ web.Notifications = (*browsers)(nil)

// Key implements web.Notifications.
func (b *browsers) Key() (string, error) {
	identity, err := webhook.OpenIdentity(b.of.Settings)
	if err != nil {
		return "", err
	}
	return identity.PublicKey()
}

// Subscribe implements web.Notifications.
func (b *browsers) Subscribe(s web.Subscription) error {
	err := b.Add(config.Browser{Endpoint: s.Endpoint, Keys: s.P256dh + "." + s.Auth, Cameras: s.Cameras, Labels: s.Labels})
	if err == nil {
		b.of.Reread()
	}
	return err
}

// Unsubscribe implements web.Notifications.
func (b *browsers) Unsubscribe(endpoint string) error {
	err := b.Remove(endpoint)
	if err == nil {
		b.of.Reread()
	}
	return err
}

// forget removes a browser whose subscription has ended.
func (w *webhooks) forget(endpoint string) {
	gone := &browsers{Browsers: config.Browsers{Sources: w.outputs.Sources}, of: w.outputs}
	if err := gone.Unsubscribe(endpoint); err != nil {
		w.outputs.Logger.Warn("a browser that is gone is not removed", "error", err)
	}
}
