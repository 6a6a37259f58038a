package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestCommandsOnOneGPURefuseSeveral, and models that take no picture.
func TestCommandsOnOneGPURefuseSeveral(t *testing.T) {
	t.Parallel()
	model := writeNetwork(t, "tensors")
	for _, c := range []struct {
		args, want string
	}{
		{
			"bench --gpu all", `engine.device "all": bench uses one GPU, name it as in --gpu 0; run spreads its cameras over several; see edge-infer bench --help`,
		},
		{
			"infer x.jpg --gpu 0,1", `engine.device "0,1": infer uses one GPU, name it as in --gpu 0; run spreads its cameras over several; see edge-infer infer --help`,
		},
		{
			"bench --engine onnxruntime=cpu --model " + model, "model " + model +
				": the model takes no pictures: it has 2 inputs, pictures go to a single one (infer --input runs it on arrays)",
		},
		{
			"infer x.jpg --engine onnxruntime=cpu --model " + model, "model " + model +
				": the model takes no pictures: it has 2 inputs, pictures go to a single one (infer --input runs it on arrays)",
		},
		{
			"run --camera demo --mqtt off --engine onnxruntime=cpu --model " + model,
			"model " + model + ": the model takes no pictures: it has 2 inputs, pictures go to a single one (infer --input runs it on arrays)",
		},
	} {
		var stderr bytes.Buffer
		command := programtest.Command(t, strings.Fields(c.args)...)
		command.Stderr = &stderr
		require.Error(t, command.Run())
		require.Equal(t, "edge-infer: "+c.want+"\n", stderr.String(), c.args)
	}
}

func TestBenchLayers(t *testing.T) {
	t.Parallel()
	environment, model := programtest.FakeMachine(t, 100300)
	plan := filepath.Join(t.TempDir(), "belt.plan")
	_, text, err := buildOf(t, environment, model, "--precision", "fp16", "--batch", "2", "-o", plan)
	require.NoError(t, err, text)
	output, err := programtest.CommandWith(t, environment, "bench", "--model", plan, "--layers", "--batches", "1,2", "--width", "320",
		"--height", "240",
		"--pictures", "1", "--json").Output()
	require.NoError(t, err)
	var found struct{ Profiles []bench.Profile }
	require.NoError(t, json.Unmarshal(output, &found))
	require.Len(t, found.Profiles, 2)
	p := found.Profiles[1]
	require.Equal(t, 2, p.Batch)
	require.Equal(t, "fp16", p.Layers[0].Precision)
	require.InDelta(t, 250, p.Layers[0].Mean, 0)
	require.Equal(t, map[string]*bench.Placement{"GPU fp16": {Layers: len(p.Layers), Mean: p.Total, Share: 1}}, p.Placement)

	c := programtest.CommandWith(t, environment, "bench", "--layers", "--engine", "onnxruntime")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	require.Error(t, c.Run())
	require.Equal(t, "edge-infer: --layers: only TensorRT tells its layers' times, not onnxruntime; see edge-infer bench --help\n",
		stderr.String())
}
