// Package credentials handles the passwords and certificates of MQTT clients and brokers.
package credentials

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// Secret is a string that is replaced by a mark in formatting, logging and marshalling.
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

// ReadSecret returns value or, if file is set, the content of the file without one final line break. The file is read each time, so that a
// changed password needs no restart.
func ReadSecret(value Secret, file string) (string, error) {
	if file == "" {
		return string(value), nil
	}
	data, err := boundedfile.Read(file, boundedfile.Small)
	if err != nil {
		return "", fmt.Errorf("read password file: %w", err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}
