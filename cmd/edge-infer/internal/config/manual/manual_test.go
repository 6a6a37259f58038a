package manual_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/manual"
)

// The published schema is the present one; it takes the default file with every example in it, and refuses what the program refuses.
func TestSchema(t *testing.T) {
	made, err := manual.Schema()
	require.NoError(t, err)
	published, err := os.ReadFile("../../../../../docs/edge-infer.schema.json")
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
	file, err := config.DefaultFile()
	require.NoError(t, err)
	require.NoError(t, validate(file))
	for _, list := range config.Lists() {
		_, example, found := strings.Cut(file, "\n# "+list.Key+":\n")
		require.True(t, found, list.Key)
		example, _, _ = strings.Cut(example, "\n\n")
		require.NoError(t, validate(list.Key+":\n"+strings.ReplaceAll("\n"+example, "\n# ", "\n")))
	}
	for _, wrong := range []string{"nonsense: 1", "detect: {max: many}", "cameras: {name: gate}", "mqtt: {control: {}}"} {
		path := filepath.Join(t.TempDir(), "f.yaml")
		require.NoError(t, os.WriteFile(path, []byte(wrong), 0o600))
		_, mistakes := config.CheckFile(path)
		require.NotEmpty(t, mistakes, wrong)
		require.Error(t, validate(wrong), wrong)
	}
}

// The documentation of the settings is the present one.
func TestReferencePage(t *testing.T) {
	made, err := manual.Reference()
	require.NoError(t, err)
	published, err := os.ReadFile("../../../../../docs/configuration.md")
	require.NoError(t, err)
	require.Equal(t, string(published), made, "edge-infer config reference >docs/configuration.md")
}
