package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// TestPluginsOnEveryCommand takes a model with an operator of its own through the commands, with the plugin that has it and without.
func TestPluginsOnEveryCommand(t *testing.T) {
	programtest.Long(t)
	t.Parallel()
	environment, _ := programtest.StandInGPU(t)
	environment = append(environment, "XDG_CACHE_HOME="+t.TempDir())
	dir := t.TempDir()
	model, plugin, plan := filepath.Join(dir, "parts.onnx"), filepath.Join(dir, "libspline.so"), filepath.Join(dir, "parts.plan")
	require.NoError(t, fake.Plugin{Operator: "CustomSpline", Version: 100300, Library: programtest.FakeTensorRT(t, 100300)}.Build(plugin))
	description := fake.Model{
		Network: "head", Operators: []string{"Conv", "CustomSpline"},
		Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 416, 416}}},
		Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{1, 10, 3549}}},
	}
	require.NoError(t, os.WriteFile(model, append(demo.Model(), description.Bytes()...), 0o600))
	scenes := programtest.Scenes(t, 2, 7)
	call := func(args ...string) (string, error) {
		c := programtest.CommandWith(t, environment, args...)
		c.Dir = dir
		output, err := c.CombinedOutput()
		return string(output), err
	}

	text, err := call("build", model, "-o", plan)
	require.Error(t, err)
	require.Contains(t, text, "Plugin not found")
	require.Contains(t, text, "--plugin LIB.so")
	text, err = call("build", model, "-o", plan, "--plugin", "libspline.so")
	require.NoError(t, err, text)
	file, err := os.ReadFile(plan)
	require.NoError(t, err)
	facts, _, err := tensorrt.ReadPlan(file)
	require.NoError(t, err)
	require.Len(t, facts.Plugins, 1)
	require.Len(t, facts.Plugins[0].SHA256, 64)

	file = []byte("engine:\n  plugins: [" + plugin + "]\nmodel:\n  path: " + plan + "\n")
	settings := filepath.Join(dir, "settings.yaml")
	require.NoError(t, os.WriteFile(settings, file, 0o600))
	images := filepath.Join(scenes, "images")
	text, err = call("infer", images, "--model", plan, "--engine", "tensorrt")
	require.Error(t, err)
	require.Contains(t, text, "plan was built with plugin libspline.so, which is not loaded (give it with --plugin libspline.so)")
	text, err = call("infer", images, "--config", settings)
	require.NoError(t, err, text)
	for _, command := range [][]string{{"bench", "--what", "transfers", "--duration", "2x"}, {"inspect"}, {"validate", "--data", scenes}} {
		text, err = call(append(command, "--model", plan, "--plugin", plugin)...)
		require.NoError(t, err, text)
	}

	// Nothing but TensorRT can run the model, so run builds its plan before anything is served.
	text, err = call("run", "--camera", "demo?width=320&height=240&fps=20", "--frames", "3", "--mqtt", "off", "--model", model, "--plugin",
		plugin, "--json")
	require.NoError(t, err, text)
	require.Contains(t, text, `"backend":"tensorrt"`)

	text, err = call("infer", images, "--model", plan, "--plugin", plugin, "--engine", "onnxruntime")
	require.Error(t, err)
	require.Contains(t, text, "engine.backend must be tensorrt or auto")
}
