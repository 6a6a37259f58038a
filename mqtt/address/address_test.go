package address

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"tcp://host": "tcp://host:1883", "mqtt://host:1": "mqtt://host:1", "host": "tcp://host:1883", "host:77": "tcp://host:77",
		"tls://host": "tls://host:8883", "ssl://host": "ssl://host:8883", "mqtts://host": "mqtts://host:8883",
		"ws://host/mqtt": "ws://host:80", "wss://host/mqtt": "wss://host:443", "tcp://[::1]": "tcp://[::1]:1883",
		"tcp://user:pass@host": "tcp://host:1883",
	} {
		a, err := Parse(text)
		require.NoError(t, err)
		assert.Equal(t, want, a.String())
	}
	a, err := Parse("tcp://edge:p%40ss@host")
	require.NoError(t, err)
	assert.Equal(t, "edge", a.User)
	assert.Equal(t, credentials.Secret("p@ss"), a.Password)
	for text, want := range map[string]string{
		"http://host":           `broker "http://host": unknown scheme "http" (use tcp, tls, ws or wss)`,
		"tcp://host:99999":      `broker "tcp://host:99999": no port 99999 (there are 1 to 65535)`,
		"tcp://host:0":          `broker "tcp://host:0": no port 0 (there are 1 to 65535)`,
		"tcp://":                `broker "tcp://": no host name`,
		"tcp://host:port":       `broker "tcp://host:port": invalid port ":port" after host (write tcp://host:1883, tls://host:8883, ws://host/path or wss://host/path)`,
		"tcp://u:geheim@h:port": `broker "tcp://***@h:port": not a URL (write tcp://host:1883, tls://host:8883, ws://host/path or wss://host/path)`,
		"tcp://u:%zz@host":      `broker "tcp://***@host": not a URL (write tcp://host:1883, tls://host:8883, ws://host/path or wss://host/path)`,
		"tcp://u:my secret@h":   `broker "tcp://***@h": not a URL (write tcp://host:1883, tls://host:8883, ws://host/path or wss://host/path)`,
	} {
		_, err := Parse(text)
		assert.EqualError(t, err, want)
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, seed := range []string{"tcp://host:1", "tls://u:p@host", "host", "ws://[::1]:80/x?y", "tcp://a@b@c", "://", "tcp://%41:%00@h"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := Parse(text)
		if err == nil {
			require.NotContains(t, a.String(), "@")
			require.NotEmpty(t, a.URL.Hostname())
			require.NotEmpty(t, a.URL.Port())
		}
	})
}
