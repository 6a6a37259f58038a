package control

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
)

// TestRenewedFilesAreSeen: each file that a run reads once, when it opens, is one whose renewal a reload notices.
func TestRenewedFilesAreSeen(t *testing.T) {
	c := config.Default()
	c.Cascade, c.Inference.Ensemble, c.Engine.Plugins = make([]config.Cascade, 1), []string{""}, []string{""}
	c.Cameras = []config.Camera{{Model: new(config.Model)}}
	stamped := func() Files {
		all := filesOf(c)
		maps.Copy(all, pageFiles(c))
		return all
	}
	for name, place := range map[string]*string{
		"second network": &c.Cascade[0].Model, "its labels": &c.Cascade[0].Labels, "another of an ensemble": &c.Inference.Ensemble[0],
		"plugin": &c.Engine.Plugins[0], "camera's model": &c.Cameras[0].Model.Path, "camera's labels": &c.Cameras[0].Model.Labels,
		"model": &c.Model.Path, "labels": &c.Model.Labels, "token": &c.Web.TokenFile, "password": &c.Web.PasswordFile,
		"certificate": &c.Web.Certificate, "key": &c.Web.Key, "broker's password": &c.MQTT.PasswordFile, "broker's authority": &c.MQTT.CA,
		"broker's certificate": &c.MQTT.Certificate, "broker's key": &c.MQTT.Key,
	} {
		*place = filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(*place, []byte("before"), 0o600), name)
		before := stamped()
		require.True(t, before.same(stamped()), name)
		require.NoError(t, os.WriteFile(*place, []byte("afterwards"), 0o600))
		require.False(t, before.same(stamped()), name)
		require.True(t, before.renewed(*place), name)
	}
	for _, model := range []string{c.Model.Path, c.Cascade[0].Model, c.Inference.Ensemble[0], c.Cameras[0].Model.Path} {
		before := stamped()
		require.NoError(t, os.WriteFile(engine.PreprocessFile(model), []byte("yolox\n"), 0o600))
		require.False(t, before.same(stamped()), "how images are taken is said beside the model now")
	}
}
