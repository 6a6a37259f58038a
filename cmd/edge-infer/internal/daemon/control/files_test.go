package control

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
)

// TestRenewedFilesAreSeen: each file of networks that a run reads once, when it opens, is one whose renewal a reload notices.
func TestRenewedFilesAreSeen(t *testing.T) {
	c := config.Default()
	c.Cascade, c.Inference.Ensemble, c.Engine.Plugins = make([]config.Cascade, 1), []string{""}, []string{""}
	c.Cameras = []config.Camera{{Name: "shared"}, {Name: "own", Model: new(config.Model)}}
	stamped := func() Files {
		all := site.Resolve(c, nil)
		return stamps(network.Files(&all))
	}
	for name, place := range map[string]*string{
		"second network": &c.Cascade[0].Model, "its labels": &c.Cascade[0].Labels, "another of an ensemble": &c.Inference.Ensemble[0],
		"plugin": &c.Engine.Plugins[0], "camera's model": &c.Cameras[1].Model.Path, "camera's labels": &c.Cameras[1].Model.Labels,
		"model": &c.Model.Path, "labels": &c.Model.Labels,
	} {
		*place = filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(*place, []byte("before"), 0o600), name)
		before := stamped()
		require.True(t, before.same(stamped()), name)
		require.NoError(t, os.WriteFile(*place, []byte("afterwards"), 0o600))
		require.False(t, before.same(stamped()), name)
		require.True(t, before.renewed(*place), name)
	}
	for _, model := range []string{c.Model.Path, c.Cascade[0].Model, c.Inference.Ensemble[0], c.Cameras[1].Model.Path} {
		before := stamped()
		require.NoError(t, os.WriteFile(engine.PreprocessFile(model), []byte("yolox\n"), 0o600))
		require.False(t, before.same(stamped()), "how images are taken is said beside the model now")
	}
}
