package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// run records its camera; the recording holds what infer finds in it.
func TestRunSaves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "belt.avi")
	text, err := programtest.Command(t, "run", "--camera", "demo", "--mqtt", "off", "--web", "off", "--engine", "onnxruntime=cpu", "--frames",
		"20", "--save", path).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Regexp(t, `saved `+path+`, \d+ frames`, string(text))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no partial file")
	found := 0
	for line := range strings.Lines(string(programtest.Output(t, "infer", path, "--model", "demo", "--engine", "onnxruntime=cpu", "--json"))) {
		var frame struct {
			Detections []any `json:"detections"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &frame), line)
		found += len(frame.Detections)
	}
	require.Positive(t, found, "the parts on the belt")
}

func TestRunRefusesToSave(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		"--camera demo --save x.mkv":                       "--save x.mkv: must end with .mp4 or .avi; see edge-infer --help",
		"--camera a=demo --camera b=demo --save x.avi":     "--save records one camera, this run has 2; see edge-infer --help",
		"--camera demo --mqtt off --save /none/recent.avi": "--save: /none/recent.avi cannot be written: no such file or directory (name a file in a directory that exists and is writable)",
	} {
		text, err := programtest.Command(t, strings.Fields(arguments)...).CombinedOutput()
		require.Error(t, err)
		require.Equal(t, "edge-infer: "+want+"\n", string(text), arguments)
	}
}
