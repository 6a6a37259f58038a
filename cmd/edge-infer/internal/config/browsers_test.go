package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const browserKeys = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4.BTBZMqHH6r4Tts7J_aSIgg"

// TestBrowsersAreWebhooks: of this run and later ones, once each, and at most so many.
func TestBrowsersAreWebhooks(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "edge-infer.yaml")
	t.Setenv("STATE_DIRECTORY", filepath.Join(dir, "state"))
	hook := "webhooks: [{name: alarm, url: 'https://example.org/', format: ntfy}]\n"
	require.NoError(t, os.WriteFile(file, []byte("cameras: [{name: gate, uri: demo}]\n"+hook), 0o600))
	sources := &Sources{File: file}
	browsers := Browsers{Sources: sources}
	add := func(i int) error {
		return browsers.Add(Browser{Endpoint: fmt.Sprintf("https://push.example.org/%d", i), Keys: browserKeys, Labels: []string{"person"}})
	}
	require.NoError(t, add(0))
	require.NoError(t, add(0))
	c, err := sources.Load()
	require.NoError(t, err)
	require.Len(t, c.Webhooks, 2)
	w := c.Webhooks[1]
	assert.Equal(t, WebPush, w.Format)
	assert.True(t, strings.HasPrefix(w.Name, "browser-"))
	assert.Equal(t, WebhookFilter{Events: []string{"new"}, Labels: []string{"person"}}, w.Filter)
	info, err := os.Stat(filepath.Join(dir, "state", "browsers.yaml"))
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, info.Mode().Perm())
	for i := 1; i < maxBrowsers; i++ {
		require.NoError(t, add(i))
	}
	require.ErrorContains(t, add(maxBrowsers), "20 browsers get notifications, which is the limit")
	require.NoError(t, browsers.Remove("https://push.example.org/0"))
	require.NoError(t, browsers.Remove("https://push.example.org/none"))
	require.NoError(t, add(maxBrowsers))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "state", "browsers.yaml"), []byte("browsers: [{endpoint: 'http://a'}]\n"), 0o600))
	_, err = sources.Load()
	require.ErrorContains(t, err, "browsers.yaml: the address of the push service must begin with https:// (remove it")
}

func TestBrowsersThatCannotBeNotified(t *testing.T) {
	for want, b := range map[string]Browser{
		"must begin with https://":             {Endpoint: "http://push.example.org/", Keys: browserKeys},
		"must begin with https:// ":            {Endpoint: "https://a:b@push.example.org/", Keys: browserKeys},
		"must have a name of the internet":     {Endpoint: "https://192.168.1.1/", Keys: browserKeys},
		"must have a name of the internet ":    {Endpoint: "https://localhost/", Keys: browserKeys},
		"the keys of the browser are damaged":  {Endpoint: "https://push.example.org/", Keys: "a.b"},
		"the keys of the browser are damaged ": {Endpoint: "https://push.example.org/", Keys: browserKeys + "\n"},
	} {
		require.ErrorContains(t, b.check(), strings.TrimSpace(want))
	}
	require.NoError(t, (&Browser{Endpoint: "https://push.example.org/1", Keys: browserKeys}).check())
}
