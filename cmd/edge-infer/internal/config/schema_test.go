package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The published schema is the present one; it takes the default file with every example in it, and refuses what the program refuses.
func TestSchema(t *testing.T) {
	made, err := Schema()
	require.NoError(t, err)
	published, err := os.ReadFile("../../../../docs/edge-infer.schema.json")
	require.NoError(t, err)
	require.Equal(t, string(published), string(made), "edge-infer config schema >docs/edge-infer.schema.json")

	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(made))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("config.json", document))
	schema, err := compiler.Compile("config.json")
	require.NoError(t, err)
	validate := func(file string) error {
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(file), &value), file)
		text, err := json.Marshal(value)
		require.NoError(t, err)
		value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
		require.NoError(t, err)
		return schema.Validate(value)
	}
	file, err := DefaultFile()
	require.NoError(t, err)
	require.NoError(t, validate(file))
	for _, comment := range []string{camerasComment(), cascadesComment()} {
		_, example, _ := strings.Cut(comment, "\n")
		require.NoError(t, validate(strings.ReplaceAll("\n"+example, "\n# ", "\n")))
	}
	for _, wrong := range []string{"nonsense: 1", "detect: {max: many}", "cameras: {name: gate}", "mqtt: {control: {}}"} {
		_, err := Default().merge("f.yaml", []byte(wrong))
		require.Error(t, err, wrong)
		require.Error(t, validate(wrong), wrong)
	}
}

// The documentation of the settings is the present one.
func TestReferencePage(t *testing.T) {
	made, err := Reference()
	require.NoError(t, err)
	published, err := os.ReadFile("../../../../docs/configuration.md")
	require.NoError(t, err)
	require.Equal(t, string(published), made, "edge-infer config reference >docs/configuration.md")
}

// Each value names the last source that says something of it, and no secret is told.
func TestOrigins(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "f.yaml"),
		"detect: {max: 7, iou: 0.6, confidence: 0.7}\nmqtt:\n  user: ${SECRET}\ncameras:\n  - {name: gate, uri: \"rtsp://me:pw@host/\"}\n")
	environment := map[string]string{"SECRET": "hidden", "EDGE_INFER_IOU": "0.5", "EDGE_INFER_CONF": "0.1"}
	s := Sources{
		Scope: Everything(), File: file,
		Environment: func(name string) (string, bool) { value, set := environment[name]; return value, set },
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	s.Flags(flags)
	require.NoError(t, flags.Parse([]string{"--config", file, "--conf", "0.2"}))
	origins, err := s.Origins()
	require.NoError(t, err)
	found := map[string][2]string{}
	for _, origin := range origins {
		found[origin.Key] = [2]string{origin.Value, origin.From}
	}
	assert.Equal(t, [2]string{"7", file + " line 1"}, found["detect.max"])
	assert.Equal(t, [2]string{"0.5", "EDGE_INFER_IOU"}, found["detect.iou"])
	assert.Equal(t, [2]string{"0.2", "--conf"}, found["detect.confidence"])
	assert.Equal(t, [2]string{"info", "default"}, found["log"])
	assert.Equal(t, [2]string{"${SECRET}", file + " line 3"}, found["mqtt.user"])
	assert.Equal(t, [2]string{"rtsp://***@host/", file + " line 5"}, found["cameras.gate"])
}
