package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// TestRenewedFilesAreSeen: each file that a run reads once, when it opens, is one whose renewal a reload notices.
func TestRenewedFilesAreSeen(t *testing.T) {
	c := config.Default()
	for name, place := range map[string]*string{
		"model": &c.Model.Path, "labels": &c.Model.Labels, "token": &c.Web.TokenFile, "password": &c.Web.PasswordFile,
		"certificate": &c.Web.Certificate, "key": &c.Web.Key, "broker's password": &c.MQTT.PasswordFile, "broker's authority": &c.MQTT.CA,
		"broker's certificate": &c.MQTT.Certificate, "broker's key": &c.MQTT.Key,
	} {
		*place = filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(*place, []byte("before"), 0o600), name)
		before := filesOf(c)
		require.True(t, before.same(filesOf(c)), name)
		require.NoError(t, os.WriteFile(*place, []byte("afterwards"), 0o600))
		require.False(t, before.same(filesOf(c)), name)
		require.True(t, before.renewed(*place), name)
	}
}
