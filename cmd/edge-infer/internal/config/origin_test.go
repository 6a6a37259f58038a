package config

import (
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each value names the last source that says something of it, and no secret is told.
func TestOrigins(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "f.yaml"),
		"detect: {max_detections: 7, iou: 0.6, confidence: 0.7}\nmqtt:\n  user: ${SECRET}\ncameras:\n  - {name: gate, uri: \"rtsp://me:pw@host/\"}\n")
	environment := map[string]string{"SECRET": "hidden", "EDGE_INFER_IOU": "0.5", "EDGE_INFER_CONFIDENCE": "0.1"}
	s := Sources{
		Scope: AllSections(), File: file,
		Environment: func(name string) (string, bool) { value, set := environment[name]; return value, set },
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Flags(flags)
	require.NoError(t, flags.Parse([]string{"--config", file, "--confidence", "0.2"}))
	origins, err := s.Origins()
	require.NoError(t, err)
	found := map[string][2]string{}
	for _, origin := range origins {
		found[origin.Key] = [2]string{origin.Value, origin.From}
	}
	assert.Equal(t, [2]string{"7", file + " line 1"}, found["detect.max_detections"])
	assert.Equal(t, [2]string{"0.5", "EDGE_INFER_IOU"}, found["detect.iou"])
	assert.Equal(t, [2]string{"0.2", "--confidence"}, found["detect.confidence"])
	assert.Equal(t, [2]string{"info", "default"}, found["log"])
	assert.Equal(t, [2]string{"${SECRET}", file + " line 3"}, found["mqtt.user"])
	assert.Equal(t, [2]string{"rtsp://***@host/", file + " line 5"}, found["cameras.gate"])
}
