package config

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
)

// Secrets reads the files that hold the page's token and password; what has no file is empty.
func (w *Web) Secrets() (token, password string, err error) {
	if token, err = readSecret("token", w.TokenFile); err == nil {
		password, err = readSecret("password", w.PasswordFile)
	}
	return token, password, err
}

// Authorization is what a request to a server proves itself with, as HTTP has it; empty for nothing. Files are read each time, so that a
// changed token needs no restart.
func (r *Remote) Authorization() (string, error) {
	token, password := r.Token, r.Password
	for _, f := range []struct {
		path string
		to   *string
	}{{r.TokenFile, &token}, {r.PasswordFile, &password}} {
		if f.path == "" {
			continue
		}
		text, err := os.ReadFile(f.path)
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

// HasSecret reports whether there is anything to prove itself with.
func (r *Remote) HasSecret() bool { return r.Token != "" || r.TokenFile != "" || r.User != "" }

// readSecret is what a file holds, without the line break at its end.
func readSecret(kind, path string) (string, error) {
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("web %s: %w (web.%s_file names a file that this user can read)", kind, err, kind)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("web %s: %s is empty (write one into it: openssl rand -hex 16)", kind, path)
	}
	return secret, nil
}
