package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"aead.dev/minisign"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// signedBelt writes a bundle of the demo model, with other class names if they are set, and returns its file and the key that signed it.
func signedBelt(t *testing.T, secret minisign.PrivateKey, version int, names string) (path string) {
	model, err := onnx.Parse("demo", demo.Model())
	require.NoError(t, err)
	model.SetMetadata("release", strconv.Itoa(version))
	if names != "" {
		model.SetMetadata("names", names)
	}
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "belt.onnx")
	require.NoError(t, model.Save(file))
	text, err := secret.MarshalText()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(key, text, 0o600))
	path = filepath.Join(dir, "belt.tar")
	_, err = (&bundle.Make{Model: file, Name: "belt", Version: int64(version), Sign: []string{key}, Output: path}).Run(t.Context())
	require.NoError(t, err)
	return path
}

// TestMenderModule: the states that Mender's client goes through, beside a running daemon. An artifact is installed if the daemon keeps its
// model.
func TestMenderModule(t *testing.T) {
	t.Parallel()
	public, secret, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	_, strangers, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	state, cache, dir := t.TempDir(), t.TempDir(), t.TempDir()
	file, target := filepath.Join(dir, "edge-infer.yaml"), filepath.Join(dir, "mender.tar")
	settings := fmt.Sprintf("name: hall\nmodel: {path: belt}\nbundle: {keys: [%s], from: %q, every: 1s, trial: 1s}\n", public, target)
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	store := catalogue.Store{Dir: filepath.Join(cache, "models")}
	keys, err := bundle.ReadKeys([]string{public.String()})
	require.NoError(t, err)
	_, err = (&bundle.Pull{Source: bundle.Source{Location: signedBelt(t, secret, 1, "")}, Store: store, Keys: keys}).Run(t.Context())
	require.NoError(t, err)
	run := programtest.StartWith(t, []string{"STATE_DIRECTORY=" + state, "CACHE_DIRECTORY=" + cache}, "--config", file,
		"--camera", "belt=demo?width=320&height=240&fps=5", "--mqtt", "off", "--json")
	run.Frame()
	run.Discard()
	for _, one := range []string{testtool.Program(t, "chmod"), testtool.Program(t, "mv"), testtool.Program(t, "sync")} { // of the module
		require.FileExists(t, one)
	}
	shell := programtest.Shell(t, dir)
	module := func(name string, artifact ...string) (string, error) {
		tree := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(tree, "files"), 0o700))
		for _, path := range artifact {
			require.NoError(t, os.Link(path, filepath.Join(tree, "files", filepath.Base(path))))
		}
		return shell(fmt.Sprintf("MENDER_EDGE_INFER_CONFIG=%s MENDER_EDGE_INFER_BUNDLE=%s STATE_DIRECTORY=%s CACHE_DIRECTORY=%s bash %s %s %s", file, target, state,
			cache, programtest.Project("deploy/mender/edge-infer-model"), name, tree))
	}
	for question, want := range map[string]string{
		"NeedsArtifactReboot": "No\n", "SupportsRollback": "Yes\n", "ArtifactCommit": "", "Cleanup": "",
	} {
		answer, err := module(question)
		require.NoError(t, err, answer)
		assert.Equal(t, want, answer, question)
	}

	second := signedBelt(t, secret, 2, "")
	for _, answer := range []string{"belt: version 2 was installed\n", "belt: version 2 was installed\n"} { // and again
		output, err := module("ArtifactInstall", second)
		require.NoError(t, err, "%s\n%s", output, run.Stderr)
		assert.Contains(t, output, answer)
		assert.EqualValues(t, 2, bundle.Installed(store, "belt").Version)
	}
	other := signedBelt(t, secret, 3, "{0: 'a', 1: 'b', 2: 'c', 3: 'd', 4: 'e', 5: 'f'}")
	for reason, artifact := range map[string][]string{
		"version 3 was refused: it has other class names": {other}, "the artifact must hold one file": nil,
		"it is signed by key": {signedBelt(t, strangers, 4, "")},
	} {
		output, err := module("ArtifactInstall", artifact...)
		require.Error(t, err)
		assert.Contains(t, output, reason)
		assert.EqualValues(t, 2, bundle.Installed(store, "belt").Version)
	}
}
