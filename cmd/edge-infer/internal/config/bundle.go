package config

// Bundle configures which model bundles are accepted.
type Bundle struct {
	Keys []string `yaml:"keys"`
}

func (b *Bundle) settings() []setting {
	return []setting{{
		"bundle.keys", "", list(&b.Keys), nil,
		"public keys of minisign, or their files, of which one must have signed a bundle; empty: unsigned ones are accepted",
	}}
}
