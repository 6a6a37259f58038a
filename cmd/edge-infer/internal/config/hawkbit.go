package config

import "net/url"

// HawkBit configures the update server that gives this device model bundles.
type HawkBit struct {
	URL       string `yaml:"url"` // of the tenant
	TokenFile string `yaml:"token_file"`
	Gateway   bool   `yaml:"gateway"`
}

func (h *HawkBit) settings() []setting {
	return []setting{
		{
			"hawkbit.url", "", text(&h.URL), h.checkURL,
			"address of a tenant of hawkBit, https://HOST/TENANT, which gives this device model bundles; empty: none",
		},
		{"hawkbit.token_file", "", text(&h.TokenFile), nil, "file with the token that this device, or its gateway, has there"},
		{"hawkbit.gateway", "", yes(&h.Gateway), nil, "the token is a gateway's, which many devices share"},
	}
}

func (h *HawkBit) checkURL() error {
	if h.URL == "" {
		return nil
	}
	u, err := url.Parse(h.URL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Path == "" ||
		u.Path == "/" {
		return must("***", "must be https:// or http://, a host and a tenant, such as https://updates.example.org/DEFAULT")
	}
	return nil
}
