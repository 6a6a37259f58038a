package diagnose

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

func TestWebhooks(t *testing.T) {
	receiver := httptest.NewServer(http.NotFoundHandler())
	defer receiver.Close()
	d := bareMachine(t)
	d.Config.State = t.TempDir()
	d.Config.Webhooks = []config.Webhook{{Name: "alarm", URL: receiver.URL, Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
	check := func(want Status, text string) {
		t.Helper()
		found := d.webhooks(t.Context())
		require.Len(t, found, 1)
		require.Equal(t, "webhook alarm", found[0].Name)
		require.Equal(t, want, found[0].Status, found[0].Detail)
		require.Contains(t, found[0].Detail, text)
	}
	check(OK, "accepts connections")
	directory := filepath.Join(d.Config.State, "webhooks", "alarm")
	require.NoError(t, os.MkdirAll(directory, 0o700))
	state := filepath.Join(directory, "state.json")
	require.NoError(t, os.WriteFile(state, []byte(`{"dead":3,"last":"2026-11-25T18:00:00Z","reason":"the receiver answers 404 Not Found"}`), 0o600))
	check(Warn, "3 events were not delivered, the last one at 2026-11-25 ")
	receiver.Close()
	check(Warn, "refused")
	d.Config.Webhooks[0].Secret = ""
	d.Config.Webhooks[0].SecretFile = filepath.Join(d.Config.State, "none")
	check(Fail, "no such file")
}
