package config

import (
	"net/url"
	"time"
)

// Verify configures the service that is asked about objects before their events are published.
type Verify struct {
	URL        string        `yaml:"url"` // it may contain secrets
	SecretFile string        `yaml:"secret_file"`
	Secret     string        `yaml:"secret"`
	Timeout    time.Duration `yaml:"timeout"`
	Cameras    []string      `yaml:"cameras"`
	Labels     []string      `yaml:"labels"`
	Otherwise  string        `yaml:"otherwise"` // Publish or Drop
}

// Publish lets events through that nobody has verified.
const Publish = "publish"

func (v *Verify) settings() []setting {
	return []setting{
		{
			"verify.url", "", text(&v.URL), v.checkURL,
			"address of a service that is asked about each new object before its events are published; empty: none",
		},
		{
			"verify.secret_file", "", text(&v.SecretFile), nil,
			"file with the secret that signs the questions, as that of webhooks",
		},
		{"verify.secret", "", text(&v.Secret), v.checkSecret, "the secret itself, instead of a file"},
		{
			"verify.timeout", "", span(&v.Timeout), spanWithin(&v.Timeout, 100*time.Millisecond, 30*time.Second),
			"how long the events of an object wait for the answer, 100ms to 30s",
		},
		{"verify.cameras", "", list(&v.Cameras), nil, "names of the cameras whose objects are asked about; empty: all"},
		{"verify.labels", "", list(&v.Labels), nil, "labels of the objects that are asked about; empty: all"},
		{
			"verify.otherwise", "", text(&v.Otherwise), oneOf(&v.Otherwise, Publish, Drop),
			"what happens to events without an answer: publish or drop",
		},
	}
}

// Errors contain neither the address nor the secret.

func (v *Verify) checkURL() error {
	if v.URL == "" {
		return nil
	}
	u, err := url.Parse(v.URL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return must("***", "must be an address that begins with https:// or http://")
	}
	return nil
}

func (v *Verify) checkSecret() error {
	if v.Secret == "" || ValidWebhookSecret(v.Secret) {
		return nil
	}
	return must("***", `must be whsec_ and the base64 of 24 to 64 bytes: echo "whsec_$(openssl rand -base64 32)"`)
}

// verifyContradictions are those in the settings of the service.
func (c *Config) verifyContradictions() []contradiction {
	v := &c.Verify
	return []contradiction{
		{
			v.Secret != "" && v.SecretFile != "",
			[]string{"verify.secret", "verify.secret_file"},
			"verify.secret and verify.secret_file: only one of them can be",
		},
		{
			v.URL != "" && v.Secret == "" && v.SecretFile == "",
			[]string{"verify.url", "verify.secret_file"},
			`verify.url needs verify.secret_file, a file: echo "whsec_$(openssl rand -base64 32)"`,
		},
		{
			v.URL != "" && !c.Detect.Track,
			[]string{"verify.url", "detect.track"},
			"verify.url: events need tracked objects, so detect.track must be true",
		},
	}
}
