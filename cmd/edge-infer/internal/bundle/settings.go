package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"aead.dev/minisign"
)

// Settings are settings for many devices.
type Settings struct {
	Version  int64     `json:"version"` // grows; devices do not go back
	Expires  time.Time `json:"expires,omitzero"`
	Settings string    `json:"settings"` // YAML, as in the configuration file
}

// Sign returns the text of the settings for devices, and its signature by a secret key of minisign, whose password is asked for if it has
// one.
func (s *Settings) Sign(key string, password func(prompt string) (string, error)) (text, signature string, err error) {
	data, err := json.Marshal(s)
	if err != nil {
		return "", "", err
	}
	secret, err := readPrivateKey(key, password)
	if err != nil {
		return "", "", err
	}
	reader := minisign.NewReader(bytes.NewReader(data))
	if _, err := io.Copy(io.Discard, reader); err != nil {
		return "", "", err
	}
	signed := reader.SignWithComments(secret, fmt.Sprintf("edge-infer settings version %d", s.Version), "signature by key "+keyID(secret.ID()))
	return string(data), string(signed), nil
}

// OpenSettings verifies the text of settings and reads it. It returns an error for settings that have expired by now.
func (k Keys) OpenSettings(text, signature string, now time.Time) (*Settings, error) {
	if len(k) == 0 {
		return nil, errors.New("bundle.keys has no key, and only signed settings are applied")
	}
	if _, err := k.verify([]byte(text), [][]byte{[]byte(signature)}); err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	s := &Settings{}
	reader := json.NewDecoder(strings.NewReader(text))
	reader.DisallowUnknownFields() // another text that the key has signed is none
	if err := reader.Decode(s); err != nil || s.Version < 1 {
		return nil, errors.New("settings: the signed text is not of edge-infer fleet configure")
	}
	if !s.Expires.IsZero() && !now.Before(s.Expires) {
		return nil, fmt.Errorf("settings version %d expired on %s (sign them again; this machine's clock is %s)", s.Version,
			s.Expires.Format(time.DateOnly), now.UTC().Format(time.RFC3339))
	}
	return s, nil
}
