package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// Every command that comes to something gives it as JSON by the same flag. Those without print one document of a form of its own, or serve.
func TestEveryResultCanBeJSON(t *testing.T) {
	without := []string{"edge-infer config defaults", "edge-infer config reference", "edge-infer config schema", "edge-infer serve"}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			walk(below)
		}
		if c.Hidden || c.HasSubCommands() && c.HasParent() {
			return
		}
		assert.Equal(t, !slices.Contains(without, c.CommandPath()), c.Flags().Lookup("json") != nil, c.CommandPath())
	}
	walk(newRoot(&bytes.Buffer{}, &bytes.Buffer{}))
}

// What config check and model rm give as JSON is what they say in words.
func TestSmallResultsAsJSON(t *testing.T) {
	home := t.TempDir()
	document := func(status int, args ...string) (parsed map[string]any) {
		c := programtest.CommandWith(t, []string{"XDG_CACHE_HOME=" + home}, append(args, "--json")...)
		output, err := c.Output()
		require.Equal(t, status, c.ProcessState.ExitCode(), err)
		require.NoError(t, json.Unmarshal(output, &parsed), "%s", output)
		return parsed
	}
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("cameras: [{name: belt, uri: demo}]\n")
	require.Equal(t, map[string]any{"v": 1.0, "file": path, "cameras": 1.0, "mistakes": []any{}}, document(0, "config", "check", path))
	write("detect: {max_detections: many}\nlog: loud\n")
	found := document(1, "config", "check", path)
	require.Len(t, found["mistakes"], 2)
	require.Equal(t, "config "+path+` line 1: detect.max_detections "many" must be a whole number`, found["mistakes"].([]any)[0])

	write("web: {listen: off}\n")
	require.Equal(t, map[string]any{"v": 1.0, "file": path, "cameras": 0.0, "mistakes": []any{}}, document(0, "config", "check", path))
	require.Contains(t, string(programtest.Output(t, "config", "check", path)), "no cameras")

	t.Setenv("XDG_CACHE_HOME", home)
	store, err := catalogue.Open()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(store.Path("mine")), 0o755))
	require.NoError(t, os.WriteFile(store.Path("mine"), []byte("x"), 0o600))
	require.Equal(t, map[string]any{"v": 1.0, "name": "mine"}, document(0, "model", "rm", "mine"))
	require.NoFileExists(t, store.Path("mine"))
}
