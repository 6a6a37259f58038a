package bundle

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSettingsAreSigned: only by a known key, unchanged, and not after they have expired.
func TestSettingsAreSigned(t *testing.T) {
	k, other := newPair(t), newPair(t)
	now := time.Now()
	s := &Settings{Version: 3, Expires: now.Add(time.Hour).UTC(), Settings: "detect: {confidence: 0.6}\n"}
	text, signature, err := s.Sign(k.secret, nil)
	require.NoError(t, err)
	got, err := k.keys(t).OpenSettings(text, signature, now)
	require.NoError(t, err)
	require.Equal(t, s, got)
	_, err = k.keys(t).OpenSettings(text, signature, now.Add(2*time.Hour))
	require.ErrorContains(t, err, "settings version 3 expired on ")
	_, err = other.keys(t).OpenSettings(text, signature, now)
	require.ErrorContains(t, err, "settings: it is signed by key ")
	_, err = k.keys(t).OpenSettings(text+" ", signature, now)
	require.ErrorContains(t, err, "is wrong: it was changed")
	_, err = Keys{}.OpenSettings(text, signature, now)
	require.EqualError(t, err, "bundle.keys has no key, and only signed settings are applied")
	_, _, err = s.Sign("none", nil)
	require.ErrorIs(t, err, os.ErrNotExist)

	// What the key has signed as a bundle is no settings.
	file := make4(t, func(m *Make) { m.Sign = []string{k.secret} })
	_, err = k.keys(t).OpenSettings(string(layoutManifest(t, file)), string(signatureText(t, file)), now)
	require.EqualError(t, err, "settings: the signed text is not of edge-infer fleet configure")
}

// FuzzSettings: no text is signed settings by a key that did not sign it.
func FuzzSettings(f *testing.F) {
	public, _ := ReadKeys([]string{"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"}) // of minisign's author
	f.Add(`{"version": 1, "settings": ""}`, "untrusted comment: a\nRWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3\n")
	f.Fuzz(func(t *testing.T, text, signature string) {
		_, err := public.OpenSettings(text, signature, time.Now())
		require.Error(t, err)
	})
}
