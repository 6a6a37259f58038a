// Package credentials holds what a client or a broker proves itself with: a password and certificates.
package credentials

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
)

// Secret is a text that never prints: formatting, logging and marshalling give a mark in its place.
type Secret string

const secretMark = "[secret]"

// String returns a mark, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return secretMark
}

// GoString keeps the %#v verb from printing the text.
func (s Secret) GoString() string { return `"` + s.String() + `"` }

// LogValue keeps slog from printing the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps JSON and YAML encoders from printing the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ReadSecret returns the text itself, from the file when one is named. The file is read each time, so that a changed password needs no
// restart; one line break at its end does not count.
func ReadSecret(value Secret, file string) (string, error) {
	if file == "" {
		return string(value), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read password file: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}
