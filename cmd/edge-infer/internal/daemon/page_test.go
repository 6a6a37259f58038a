package daemon

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

func TestThePageAsksForUserAndPassword(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("correct horse\n"), 0o600))
	p := programtest.StartWith(
		t,
		[]string{"EDGE_INFER_WEB_USER=operator", "EDGE_INFER_WEB_FRAME_RATE=5"},
		"--camera",
		"demo?width=320&height=240",
		"--mqtt",
		"off",
		"--web",
		"127.0.0.1:0",
		"--web-password-file",
		file,
	)
	page := p.PrintedAfter("web page at ")

	code, _ := programtest.Get(t, programtest.Visitor(t), page+"api/status")
	require.Equal(t, http.StatusUnauthorized, code)
	address, err := url.Parse(page)
	require.NoError(t, err)
	address.User = url.UserPassword("operator", "correct horse")
	code, _ = programtest.Get(t, programtest.Visitor(t), address.String()+"metrics")
	require.Equal(t, http.StatusOK, code)

	browser := programtest.Visitor(t)
	response, err := browser.PostForm(page+"login", url.Values{"user": {"operator"}, "secret": {"correct horse"}})
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	code, text := programtest.Get(t, browser, page+"api/status")
	require.Equal(t, http.StatusOK, code)
	var status struct {
		Engine    struct{ Backend, Device, Reason string }
		ImageRate int `json:"image_rate"`
	}
	require.NoError(t, json.Unmarshal(text, &status))
	require.Equal(t, "onnxruntime", status.Engine.Backend)
	require.NotEmpty(t, status.Engine.Reason)
	require.Equal(t, 5, status.ImageRate)
	require.Eventually(t, func() bool {
		code, _ := programtest.Get(t, programtest.Visitor(t), page+"readyz")
		return code == http.StatusOK
	}, programtest.Patience, 50*time.Millisecond)
	require.NoError(t, p.Stop(syscall.SIGTERM))
	require.NotContains(t, p.Stderr.String(), "correct horse")
}

func TestThePageIsNotServedWithoutASecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, short := filepath.Join(dir, "empty"), filepath.Join(dir, "short")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	require.NoError(t, os.WriteFile(short, []byte("1234\n"), 0o600))
	for _, test := range []struct {
		name, flags, want string
		status            int
	}{
		{
			"empty token", "--web-token-file " + empty, "edge-infer: web token: " + empty +
				" is empty (write one into it: openssl rand -hex 16)\n", 1,
		},
		{
			"empty password", "--web-user me --web-password-file " + empty,
			"edge-infer: web password: " + empty + " is empty (write one into it: openssl rand -hex 16)\n", 1,
		},
		{
			"no token file", "--web-token-file /none",
			"edge-infer: web token: open /none: no such file or directory (web.token_file names a file that this user can read)\n", 1,
		},
		{"short token", "--web-token-file " + short, "edge-infer: web: the token has 4 characters, it needs 16 (openssl rand -hex 24 prints one)\n", 1},
		{"short password", "--web-user me --web-password-file " + short, "edge-infer: web: the password has 4 characters, it needs 8\n", 1},
		{"user alone", "--web-user me", "edge-infer: --web-user: web.user and web.password_file: one needs the other; see edge-infer --help\n", 2},
		{
			"user and token", "--web-user me --web-password-file x --web-token-file y",
			"edge-infer: --web-user: web.user and web.token_file: only one of them can be; see edge-infer --help\n", 2,
		},
		{
			"open to all", "--web 0.0.0.0:0",
			"edge-infer: web: 0.0.0.0:0 is reachable from other machines: set a token, or a user and a password, or listen on 127.0.0.1\n", 1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := programtest.Command(t, append([]string{"--camera", "demo", "--mqtt", "off", "--web", "127.0.0.1:0"},
				strings.Fields(test.flags)...)...)
			var stderr strings.Builder
			c.Stderr = &stderr
			require.Error(t, c.Run())
			require.Equal(t, test.status, c.ProcessState.ExitCode())
			said := ""
			for line := range strings.Lines(stderr.String()) {
				if !strings.HasPrefix(line, "time=") {
					said += line
				}
			}
			require.Equal(t, test.want, said)
		})
	}
}
