package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestABrowserSubscribes: while frames go on, for later runs as well, until it does not want to any more. The key stays the same.
func TestABrowserSubscribes(t *testing.T) {
	t.Parallel()
	const keys = `"p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", "auth": "BTBZMqHH6r4Tts7J_aSIgg"`
	directory := t.TempDir()
	page := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	start := func() *programtest.Program {
		p := programtest.StartWith(t, []string{"XDG_STATE_HOME=" + directory}, "--camera", "belt=demo?width=320&height=240&fps=5",
			"--mqtt", "off", "--web", page, "--json")
		p.Frame()
		p.Discard()
		return p
	}
	client := programtest.Visitor(t)
	ask := func(method, body string) (int, string) {
		request, err := http.NewRequest(method, "http://"+page+"/api/notifications", strings.NewReader(body))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		var text bytes.Buffer
		_, err = text.ReadFrom(response.Body)
		require.NoError(t, err)
		return response.StatusCode, text.String()
	}
	notified := func(count int) {
		t.Helper()
		require.Eventually(t, func() bool {
			code, text := programtest.Get(t, client, "http://"+page+"/api/status")
			var status struct{ Webhooks []struct{ Name, Host string } }
			assert.Equal(t, http.StatusOK, code)
			assert.NoError(t, json.Unmarshal(text, &status))
			return len(status.Webhooks) == count && (count == 0 || status.Webhooks[0].Host == "https://push.invalid")
		}, programtest.Patience, 50*time.Millisecond)
	}
	p := start()
	code, first := ask("GET", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, first, `"key":"B`)
	notified(0)
	code, text := ask("POST", `{"endpoint": "https://192.168.0.1/", `+keys+`}`)
	assert.Equal(t, http.StatusUnprocessableEntity, code)
	assert.Contains(t, text, "must have a name of the internet")
	code, text = ask("POST", `{"endpoint": "https://push.invalid/secret-path", "labels": ["nut"], `+keys+`}`)
	require.Equal(t, http.StatusNoContent, code, text)
	notified(1)
	require.NoError(t, p.Stop(syscall.SIGTERM))
	assert.NotContains(t, p.Stderr.String(), "secret-path")
	assert.Contains(t, p.Stderr.String(), "undisturbed=1")

	p = start()
	notified(1)
	_, again := ask("GET", "")
	assert.Equal(t, first, again)
	code, text = ask("DELETE", `{"endpoint": "https://push.invalid/secret-path"}`)
	require.Equal(t, http.StatusNoContent, code, text)
	notified(0)
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
