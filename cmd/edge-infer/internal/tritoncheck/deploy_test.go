package tritoncheck

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// The examples' configurations are right, and what they name is there: the servers of the manifest by the names that the cluster gives
// them, and the files that the containers of compose.yaml mount.
func TestDeploymentExamples(t *testing.T) {
	dir := programtest.Project("deploy/triton")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(text)
	}
	load := func(text string) *config.Config {
		path := filepath.Join(t.TempDir(), "edge-infer.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		sources := config.Sources{File: path, Environment: func(name string) (string, bool) { return "demo", name == "EDGE_INFER_CAMERA" }}
		c, err := sources.Load()
		require.NoError(t, err)
		return c
	}
	var compose struct {
		Services map[string]struct {
			Image   string   `yaml:"image"`
			Volumes []string `yaml:"volumes"`
		} `yaml:"services"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(read("compose.yaml")), &compose))
	c := load(read("edge-infer.yaml"))
	require.Equal(t, "triton=grpc://triton:8001/yolo11n", c.Engine.Backend)
	require.Equal(t, "tcp://broker:1883", c.MQTT.URL)
	for _, name := range []string{"triton", "broker", "edge-infer"} {
		require.Contains(t, compose.Services, name)
	}
	made := []string{"./models", "./passwords", "./yolo11n.onnx"} // by who follows README.md
	for name, service := range compose.Services {
		for _, volume := range service.Volumes {
			from, to, _ := strings.Cut(volume, ":")
			if strings.HasPrefix(from, ".") && !slices.Contains(made, from) {
				require.FileExists(t, filepath.Join(dir, from), name)
			}
			if from == "./yolo11n.onnx" {
				require.Equal(t, c.Model.Path+":ro", to)
			}
		}
	}

	servers, configuration := 0, ""
	for _, text := range strings.Split(read("kubernetes.yaml"), "\n---\n") {
		var object struct {
			Kind     string `yaml:"kind"`
			Metadata struct {
				Name string `yaml:"name"`
			} `yaml:"metadata"`
			Spec struct {
				Replicas int `yaml:"replicas"`
			} `yaml:"spec"`
			Data map[string]string `yaml:"data"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(text), &object))
		if object.Kind == "StatefulSet" {
			servers = object.Spec.Replicas
		}
		if object.Metadata.Name == "edge-infer" && object.Kind == "ConfigMap" {
			configuration = object.Data["edge-infer.yaml"]
		}
	}
	c = load(configuration)
	require.Equal(t, servers, strings.Count(c.Engine.Backend, "grpc://triton-"))
	require.Equal(t, config.Local, c.Remote.Fallback)
}
