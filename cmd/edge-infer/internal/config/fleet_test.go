package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFleetSettings are applied over the file and the environment, and keep what is each device's own.
func TestFleetSettings(t *testing.T) {
	state := t.TempDir()
	file := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: gate\ncameras: [{name: a, uri: demo}]\ndetect: {confidence: 0.4, iou: 0.5}\n"), 0o600))
	environment := map[string]string{"STATE_DIRECTORY": state, "EDGE_INFER_CONFIDENCE": "0.3"}
	s := &Sources{File: file, Environment: func(name string) (string, bool) { value, set := environment[name]; return value, set }}
	settings := FleetSettings{State: state}
	before, err := settings.Read()
	require.NoError(t, err)
	require.Nil(t, before)
	text := "detect: {confidence: 0.6}\nlog: \"${HOME}\"\n"
	require.NoError(t, settings.Write([]byte("detect: {confidence: 0.6}\n")))
	c, err := s.Load()
	require.NoError(t, err)
	require.InDelta(t, 0.6, c.Detect.Confidence, 0)
	require.InDelta(t, 0.5, c.Detect.IoU, 0)
	require.Len(t, c.Cameras, 1)
	require.NoError(t, settings.Write([]byte(text)))
	_, err = s.Load()
	require.ErrorContains(t, err, `"${HOME}"`, "not resolved")
	for text, want := range map[string]string{
		"name: other\n": "name is each device's own", "cameras: [{name: b, uri: demo}]\n": "cameras is each device's own",
		"bundle: {keys: [RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3]}\n": "bundle.keys is each device's own",
		"webhooks: [{name: a, url: \"https://example.org\"}]\n":                        "webhooks is each device's own",
		"cascade: [{name: a, model: b.onnx}]\n":                                        "cascade is each device's own",
		"detect: {confidenc: 0.3}\n":                                                   "line 1: ", "detect: [\n": "",
	} {
		require.ErrorContains(t, CheckFleetSettings([]byte(text)), want)
		require.NoError(t, settings.Write([]byte(text)))
		_, err := s.Load()
		require.ErrorContains(t, err, filepath.Join(state, fleetFile))
	}
	require.NoError(t, CheckFleetSettings([]byte("detect: {confidence: 0.6}\n")))
	require.ErrorContains(t, CheckFleetSettings(make([]byte, maxFile+1)), "at most 524288 are read")
	require.NoError(t, settings.Write(nil))
	require.NoError(t, settings.Write(nil))
	c, err = s.Load()
	require.NoError(t, err)
	require.InDelta(t, 0.3, c.Detect.Confidence, 0)
}
