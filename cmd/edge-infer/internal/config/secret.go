package config

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// Secrets reads the files with the page's token and password; values without a file are empty.
func (w *Web) Secrets() (token, password string, err error) {
	if token, err = readSecret("token", w.TokenFile); err == nil {
		password, err = readSecret("password", w.PasswordFile)
	}
	return token, password, err
}

// Authorization returns the Authorization header for requests to a server; empty for none. Files are read each time, so that a changed
// token needs no restart.
func (r *Remote) Authorization() (string, error) {
	token, password := r.Token, r.Password
	for _, f := range []struct {
		path string
		to   *string
	}{{r.TokenFile, &token}, {r.PasswordFile, &password}} {
		if f.path == "" {
			continue
		}
		text, err := boundedfile.Read(f.path, boundedfile.Small)
		if err != nil {
			return "", fmt.Errorf("remote: %w", err)
		}
		*f.to = strings.TrimSpace(string(text))
	}
	switch {
	case r.User != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(r.User+":"+password)), nil
	case token != "":
		return "Bearer " + token, nil
	}
	return "", nil
}

// HasSecret reports whether a token or password for inference servers is configured.
func (r *Remote) HasSecret() bool { return r.Token != "" || r.TokenFile != "" || r.User != "" }

// readSecret returns the content of a file without its final line break.
func readSecret(kind, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := boundedfile.Read(path, boundedfile.Small)
	if err != nil {
		return "", fmt.Errorf("web %s: %w (web.%s_file names a file that this user can read)", kind, err, kind)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("web %s: %s is empty (write one into it: openssl rand -hex 16)", kind, path)
	}
	return secret, nil
}

// minSecretPath is the length of an address' path and query from which they are taken for a secret, as those of chat services are.
const minSecretPath = 16

// Secrets returns the passwords and tokens that a configuration of these sources uses, as far as this user can read them, from references,
// addresses, files and variables. Callers remove them from what they show.
func (s *Sources) Secrets(c *Config) []string {
	var all []string
	add := func(value string) {
		if value = strings.TrimSpace(value); value != "" {
			all = append(all, value, url.QueryEscape(value), url.PathEscape(value))
		}
	}
	r := resolver{Lookup: s.lookup(), Secret: add}
	_ = r.Resolve(s.merged().Config) // c was resolved before
	files := []string{
		c.MQTT.PasswordFile, c.Remote.TokenFile, c.Remote.PasswordFile, c.Web.TokenFile, c.Web.PasswordFile, c.Verify.SecretFile,
		c.HawkBit.TokenFile,
	}
	receivers := []string{c.Verify.URL}
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		files = append(files, w.SecretFile)
		receivers = append(receivers, w.URL)
		add(w.Secret)
	}
	for _, address := range receivers {
		add(address)
		if u, err := url.Parse(address); err == nil && len(u.RequestURI()) >= minSecretPath {
			add(strings.TrimPrefix(u.RequestURI(), "/"))
		}
	}
	for _, file := range files {
		if file == "" {
			continue
		}
		if text, err := boundedfile.Read(file, boundedfile.Small); err == nil {
			add(string(text))
			for line := range strings.Lines(string(text)) { // a role may precede a token, and a name follow
				if fields := strings.Fields(line); len(fields) > 1 {
					add(fields[1])
				}
			}
		}
	}
	for _, value := range []string{c.MQTT.Password, c.Remote.Token, c.Remote.Password, c.Verify.Secret} {
		add(value)
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		value, _ := s.lookup()(name)
		add(value)
	}
	if c.Upload.CredentialsFile != "" {
		text, _ := boundedfile.Read(c.Upload.CredentialsFile, boundedfile.Small)
		for line := range strings.Lines(string(text)) {
			_, value, _ := strings.Cut(line, "=")
			add(value)
		}
	}
	addresses := c.MQTT.Brokers()
	for _, camera := range c.Cameras {
		addresses = append(addresses, camera.URI, camera.Record)
	}
	for _, address := range addresses {
		if u, err := url.Parse(address); err == nil {
			password, _ := u.User.Password()
			add(password)
		}
	}
	return all
}
