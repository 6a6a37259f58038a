package diagnose

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// TestUpdateServer: doctor asks it, and a run does not start without its token.
func TestUpdateServer(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/DEFAULT/controller/v1/gate", r.URL.Path)
		assert.Equal(t, "TargetToken secret", r.Header.Get("Authorization"))
		w.WriteHeader(status)
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	c := config.Default()
	c.Name, c.State = "gate", t.TempDir()
	c.Bundle.Keys = []string{"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"}
	c.HawkBit = config.HawkBit{URL: server.URL + "/DEFAULT", TokenFile: filepath.Join(t.TempDir(), "token")}
	require.NoError(t, os.WriteFile(c.HawkBit.TokenFile, []byte("secret\n"), 0o600))
	d := &Doctor{Config: c, Timeout: time.Minute}
	checks := d.updates(t.Context())
	require.Len(t, checks, 2)
	assert.Equal(t, Check{Name: "update server", Status: OK, Detail: "it knows this device"}, checks[0])
	assert.Equal(t, "no newer bundle was tried on this device", checks[1].Detail)
	status = http.StatusForbidden
	assert.Contains(t, d.updates(t.Context())[0].Detail, "the server returned 403 Forbidden (the token of hawkbit.token_file is not")
	p := &Preflight{Config: c}
	require.Empty(t, p.updates())
	c.HawkBit.TokenFile = "none"
	c.Bundle.Keys[0] = "damaged"
	mistakes := p.updates()
	require.Len(t, mistakes, 2)
	require.ErrorContains(t, mistakes[0], "bundle.keys")
	require.EqualError(t, mistakes[1], "hawkbit.token_file: open none: no such file or directory")
}
