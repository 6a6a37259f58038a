package manual_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/manual"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/zone"
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
	file, err := manual.DefaultFile(true)
	require.NoError(t, err)
	require.NoError(t, validate(file))
	for _, list := range config.Lists() {
		_, example, found := strings.Cut(file, "\n# "+list.Key+":\n")
		require.True(t, found, list.Key)
		example, _, _ = strings.Cut(example, "\n\n")
		require.NoError(t, validate(list.Key+":\n"+strings.ReplaceAll("\n"+example, "\n# ", "\n")))
	}
	for _, wrong := range []string{"nonsense: 1", "detect: {max_detections: many}", "cameras: {name: gate}", "mqtt: {control: {}}"} {
		path := filepath.Join(t.TempDir(), "f.yaml")
		require.NoError(t, os.WriteFile(path, []byte(wrong), 0o600))
		_, mistakes := (&config.Sources{File: path}).Check()
		require.NotEmpty(t, mistakes, wrong)
		require.Error(t, validate(wrong), wrong)
	}
}

// The default file says every default; its comments are examples of a camera and of a cascade.
func TestDefaultFile(t *testing.T) {
	file, err := manual.DefaultFile(true)
	require.NoError(t, err)
	read := func(file string) *config.Config {
		c := new(config.Config)
		require.NoError(t, yaml.UnmarshalWithOptions([]byte(file), c, yaml.Strict()), file)
		return c
	}
	want := config.Default()
	want.Detect.Classes, want.MQTT.DiscoveryLabels = []string{}, []string{}
	want.Inference.Ensemble, want.Inference.Weights, want.Inference.Augment = []string{}, []float64{}, []string{}
	require.Equal(t, want, read(file))

	example := func(list string) *config.Config {
		text := strings.ReplaceAll(file, "\n# ", "\n")
		_, text, found := strings.Cut(text, "\n"+list+":\n")
		require.True(t, found, list)
		text, _, _ = strings.Cut(text, "\n\n")
		return read(list + ":\n" + text)
	}
	require.Equal(t, []config.Cascade{{
		Name: "colour", Model: "colour.onnx", Labels: "colours.txt", Layout: "auto", On: []string{"car", "truck"},
		MinSize: cascade.DefaultMinSize, Margin: 0.1, Every: cascade.DefaultInterval, Votes: cascade.DefaultVotes, Confidence: 0.5,
		Batch: config.DefaultCascadeBatch, Remember: track.DefaultMaxLostAge,
	}}, example("cascade").Cascade)
	c := example("cameras")
	require.Len(t, c.Cameras, 1)
	camera := c.Cameras[0]
	require.NoError(t, camera.Analytics.Validate(zone.Names{Labels: []string{"person"}}))
	require.Equal(t, time.Minute, camera.Analytics.Zones[0].Loiter)
	require.Equal(t, zone.DefaultInertia, camera.Analytics.Zones[0].Inertia)
	require.Equal(t, "door", camera.Analytics.Lines[0].Name)
	require.Equal(t, map[string]float32{"person": 0.5}, camera.Analytics.Objects.Score)
	require.Equal(t, zone.DefaultSnapshotEvery, camera.Analytics.Objects.SnapshotEvery)
	camera.Analytics = zone.Config{}
	roi, side, overlap, enabled := &config.Area{Y: 0.4, Width: 1, Height: 0.6}, 640, want.Inference.Overlap, true
	require.Equal(t, config.Camera{
		Name: "gate", URI: "rtsp://192.0.2.10/stream", Record: "rtsp://192.0.2.10/main", Interval: 1, Stall: 5 * time.Second,
		MaxPixels: capture.DefaultMaxPixels, Priority: 1,
		ROI: roi, Tile: &side, Overlap: &overlap, Confidence: 0.4, Profile: "ptz",
		Motion: &config.CameraMotion{Enabled: true, Sensitivity: want.Motion.Sensitivity, MinRate: want.Motion.MinRate, ROI: roi},
		Clips:  &config.CameraClips{Enabled: &enabled, Classes: []string{"person"}, Zones: []string{"yard"}},
		Privacy: config.Privacy{
			Regions: [][]zone.Point{{{X: 0, Y: 0}, {X: 0.3, Y: 0}, {X: 0.3, Y: 1}, {X: 0, Y: 1}}}, Labels: []string{"person"},
		},
		Model: &config.Model{
			Path: "helmets.onnx", Labels: "helmets.txt", Layout: config.Auto, Preprocess: "torchvision", Size: "640", Activation: config.Auto,
		},
	}, camera)
}

// The short file contains about 40 settings with their defaults, and is valid.
func TestShortDefaultFile(t *testing.T) {
	file, err := manual.DefaultFile(false)
	require.NoError(t, err)
	c := config.Default()
	require.NoError(t, yaml.UnmarshalWithOptions([]byte(file), c, yaml.Strict()), file)
	count := 0
	for line := range strings.Lines(file) {
		if key := strings.TrimSpace(line); !strings.HasPrefix(key, "#") && strings.Contains(key, ": ") {
			count++
		}
	}
	require.InDelta(t, 38, count, 8)
	for _, section := range []string{"runtime:", "thermal:"} {
		require.NotContains(t, file, "\n"+section)
	}
	require.Contains(t, file, "config defaults --all")
}

// The documentation of the settings is the present one.
func TestReferencePage(t *testing.T) {
	made, err := manual.Reference()
	require.NoError(t, err)
	published, err := os.ReadFile("../../../../../docs/configuration.md")
	require.NoError(t, err)
	require.Equal(t, string(published), made, "edge-infer config reference >docs/configuration.md")
}
