package config

import (
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
