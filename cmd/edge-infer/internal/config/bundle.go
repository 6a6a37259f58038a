package config

import "time"

// Bundle configures which model bundles are accepted, and where the daemon gets newer ones from.
type Bundle struct {
	Keys      []string      `yaml:"keys"`
	From      string        `yaml:"from"`
	Every     time.Duration `yaml:"every"`
	Trial     time.Duration `yaml:"trial"`
	Agreement float64       `yaml:"agreement"`
}

func (b *Bundle) settings() []setting {
	return []setting{
		{
			"bundle.keys", "", list(&b.Keys), nil,
			"public keys of minisign, or their files, of which one must have signed a bundle; empty: unsigned ones are accepted",
		},
		{
			"bundle.from", "", text(&b.From), nil,
			"registry, https address or file with the newest bundle of a model that cameras use; it is installed while they run; empty: never",
		},
		{
			"bundle.every", "", span(&b.Every), spanWithin(&b.Every, time.Second, 30*24*time.Hour),
			"time between two checks for a newer bundle",
		},
		{
			"bundle.trial", "", span(&b.Trial), spanWithin(&b.Trial, time.Second, 7*24*time.Hour),
			"how long a new model runs on trial; before that, images for the comparison are collected for as long",
		},
		{
			"bundle.agreement", "", number(&b.Agreement), within(&b.Agreement, 0, 1),
			"least share of objects that a new model and the running one must both find on images of the cameras; 0: without a comparison",
		},
	}
}

// bundleContradictions are those in the settings of updates.
func (c *Config) bundleContradictions() []contradiction {
	return []contradiction{{
		c.Bundle.From != "" && len(c.Bundle.Keys) == 0,
		[]string{"bundle.from", "bundle.keys"},
		"bundle.from needs bundle.keys: only signed bundles are installed without a person",
	}, {
		c.HawkBit.URL != "" && len(c.Bundle.Keys) == 0,
		[]string{"hawkbit.url", "bundle.keys"},
		"hawkbit.url needs bundle.keys: only signed bundles are installed without a person",
	}}
}
