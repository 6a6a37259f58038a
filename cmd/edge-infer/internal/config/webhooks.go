package config

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Webhook is an HTTP receiver of events.
type Webhook struct {
	Name   string `yaml:"name"`
	URL    string `yaml:"url"`              // it may contain secrets
	Format string `yaml:"format,omitempty"` // Standard, Ntfy or WebPush; empty for Standard
	// Secret signs the events or is, with Ntfy, the access token, with WebPush the keys of the browser; SecretFile holds it otherwise.
	Secret     string        `yaml:"secret,omitempty"`
	SecretFile string        `yaml:"secret_file,omitempty"`
	Filter     WebhookFilter `yaml:"filter,omitempty"`
}

// The formats of webhooks.
const (
	Standard = "standard" // Standard Webhooks: signed JSON
	Ntfy     = "ntfy"     // notifications of ntfy, with an image of the object
	WebPush  = "webpush"  // notifications of a browser that has subscribed on the page
)

// WebhookFilter selects events. Empty fields select all; without Events all but updates.
type WebhookFilter struct {
	Events  []string `yaml:"events,omitempty"`
	Cameras []string `yaml:"cameras,omitempty"`
	Labels  []string `yaml:"labels,omitempty"`
	Zones   []string `yaml:"zones,omitempty"`
}

// webhookSettings lists every value of a webhook in the order of the default file.
func webhookSettings() []ListSetting {
	return []ListSetting{
		{Key: "name", Example: "alarm", Help: "name in logs, status and metrics", Common: true},
		{Key: "url", Example: "https://example.org/edge-infer", Help: "address that events are posted to", Common: true},
		{Key: "format", Example: Ntfy, Help: "standard (signed JSON, the default) or ntfy (notifications on a phone, with an image)"},
		{
			Key: "secret_file", Example: "/etc/edge-infer/alarm-secret", Common: true,
			Help: "file with the signing secret, whsec_ and base64 of 24 to 64 random bytes; with ntfy an access token, if it needs one",
		},
		{Key: "secret", Example: `"${ALARM_SECRET}"`, Help: "the secret itself, instead of a file"},
		{Key: "filter.events", Example: "[new, end]", Help: strings.Join(payload.EventTypes(), ", ") + "; empty: all but update"},
		{Key: "filter.cameras", Example: "[gate]", Help: "names of cameras; empty: all"},
		{Key: "filter.labels", Example: "[person]", Help: "labels of objects; empty: all"},
		{Key: "filter.zones", Example: "[yard]", Help: "zones that the object is or was in; empty: anywhere"},
	}
}

// Host returns scheme and host of a webhook's address, which are not secret.
func (w *Webhook) Host() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// webhookMistakes returns the errors in the settings of webhooks.
func (c *Config) webhookMistakes() (found []mistake) {
	seen := map[string]bool{}
	for i := range c.Webhooks {
		e := element{key: fmt.Sprintf("webhooks[%d]", i)}
		c.Webhooks[i].check(&e, seen)
		found = append(found, e.found...)
		seen[c.Webhooks[i].Name] = true
	}
	return found
}

// ValidWebhookSecret reports whether a signing secret has the form of the standard: whsec_ and 24 to 64 bytes in base64.
func ValidWebhookSecret(secret string) bool { return webhookSecret.MatchString(secret) }

var webhookSecret = regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{32,86}={0,2}$`)

// check validates a webhook; seen holds the names of those before it. Errors contain neither addresses nor secrets.
func (w *Webhook) check(e *element, seen map[string]bool) {
	_, _, simple := splitNamed(w.Name + "=x")
	e.must(simple, "name", w.Name, "must be a name of letters, digits, - and _")
	e.must(w.Name == "" || !seen[w.Name], "name", w.Name, "is used twice")
	u, err := url.Parse(w.URL)
	usable := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
	e.must(usable, "url", "***", "must be an address that begins with https:// or http://")
	e.must(w.Secret == "" || w.SecretFile == "", "secret", "***", "and secret_file: only one of them can be")
	subscribed := w.Format == WebPush && pushKeys.MatchString(w.Secret)
	e.must(subscribed || slices.Contains([]string{"", Standard, Ntfy}, w.Format), "format", w.Format, "must be standard or ntfy")
	signed := w.Format != Ntfy && w.Format != WebPush
	e.must(!signed || w.Secret != "" || w.SecretFile != "", "secret_file", "", `must be a file: echo "whsec_$(openssl rand -base64 32)"`)
	e.must(!signed || w.Secret == "" || ValidWebhookSecret(w.Secret), "secret", "***",
		`must be whsec_ and the base64 of 24 to 64 bytes: echo "whsec_$(openssl rand -base64 32)"`)
	for _, kind := range w.Filter.Events {
		e.must(slices.Contains(payload.EventTypes(), kind), "filter.events", kind, "must be "+alternatives(payload.EventTypes()))
	}
}
