package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWebhooks(t *testing.T) {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	const file, wrong = ", secret_file: /f", `webhooks[0].`
	for _, c := range [][2]string{
		{"name: a, url: https://h/x, secret: " + secret, ""},
		{"name: a, url: http://h, filter: {events: [new, cross]}" + file, ""},
		{"name: a, url: https://ntfy.sh/topic, format: ntfy", ""},
		{"name: a, url: https://ntfy.sh/topic, format: ntfy, secret: tk_123", ""},
		{"name: a, url: https://h, format: slack" + file, wrong + `format "slack" must be standard or ntfy`},
		{"name: a b, url: https://h" + file, wrong + `name "a b" must be a name of letters, digits, - and _`},
		{"name: a, url: ftp://hunt" + file, wrong + `url "***" must be an address that begins with https:// or http://`},
		{"name: a, url: https://h", wrong + `secret_file "" must be a file: echo "whsec_$(openssl rand -base64 32)"`},
		{"name: a, url: https://h, secret: hunter", wrong + `secret "***" must be whsec_ and the base64 of 24 to 64 bytes: echo `},
		{"name: a, url: https://h, secret: whsec_" + strings.Repeat("a", 90), wrong + `secret "***" must be whsec_ and`},
		{"name: a, url: https://h, secret: " + secret + file, wrong + `secret "***" and secret_file: only one of them can be`},
		{"name: a, url: https://h, filter: {events: [began]}" + file, wrong + `filter.events "began" must be new, update, enter, loiter, leave,`},
		{"name: a, url: https://h" + file + "}\n  - {name: a, url: https://h" + file, `webhooks[1].name "a" is used twice`},
	} {
		entry, want := c[0], c[1]
		path := filepath.Join(t.TempDir(), "f.yaml")
		require.NoError(t, os.WriteFile(path, []byte("webhooks:\n  - {"+entry+"}\n"), 0o600))
		_, err := (&Sources{File: path}).Load()
		if want == "" {
			require.NoError(t, err, entry)
			continue
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hunt")
	}
}

// Webhooks of later files are appended, and errors have their own lines.
func TestWebhooksOfSeveralFiles(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "edge-infer.yaml")
	require.NoError(t, os.WriteFile(path, []byte("webhooks:\n  - {name: a, url: https://h/secret-path, secret_file: /f}\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(directory, "conf.d"), 0o700))
	more := filepath.Join(directory, "conf.d", "b.yaml")
	require.NoError(t, os.WriteFile(more, []byte("webhooks:\n  - {name: b, url: https://h, secret_file: /f}\n"), 0o600))
	s := &Sources{File: path}
	c, err := s.Load()
	require.NoError(t, err)
	require.Len(t, c.Webhooks, 2)
	origins, err := s.Origins()
	require.NoError(t, err)
	require.Contains(t, origins, Origin{"webhooks.a", "https://h", path + " line 2"})
	require.Contains(t, origins, Origin{"webhooks.b", "https://h", more + " line 2"})
	require.NoError(t, os.WriteFile(more, []byte("webhooks:\n  - name: b\n    url: h\n    secret_file: /f\n"), 0o600))
	_, err = s.Load()
	require.ErrorContains(t, err, more+" line 3: webhooks[1].url")
}
