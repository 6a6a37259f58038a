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

// TestCommandsOnOneGPURefuseSeveral, and models that take no image.
func TestCommandsOnOneGPURefuseSeveral(t *testing.T) {
	t.Parallel()
	model := writeNetwork(t, "tensors")
	for _, c := range []struct {
		args, want string
	}{
		{
			"bench --gpu all", `engine.gpu "all": bench uses one GPU, name it as in --gpu 0; run spreads its cameras over several; see edge-infer bench --help`,
		},
		{
			"bench --what loop --engine onnxruntime=cpu --model " + model, "model " + model +
				": the model takes no images: it has 2 inputs, images go to a single one (infer --input runs it on arrays)",
		},
		{
			"bench --engine tensorrt,onnxruntime --library /lib/x.so",
			"--library belongs to one engine: with several set EDGE_INFER_TENSORRT and EDGE_INFER_ONNXRUNTIME; see edge-infer bench --help",
		},
		{"bench --compare a.json", "--compare A.json B.json takes two documents that bench --output wrote; see edge-infer bench --help"},
		{"bench --rate inf", "--rate must be 0.01 to 1000000 frames a second, or 0; see edge-infer bench --help"},
		{
			"bench --what engine --rate 30",
			"--what engine is one request after another: --rate and --drive are for transfers and loop; see edge-infer bench --help",
		},
		{"bench --drive paced", "--drive paced needs --rate, the frames a second of each camera; see edge-infer bench --help"},
		{"bench --what all,nothing", `--what "nothing": must be engine, transfers, loop or all; see edge-infer bench --help`},
		{"bench --require p99=1ms", `--require "p99=1ms": must use <=, >=, < or >; see edge-infer bench --help`},
		{
			"infer x.jpg --engine onnxruntime=cpu --model " + model, "model " + model +
				": the model takes no images: it has 2 inputs, images go to a single one (infer --input runs it on arrays)",
		},
		{
			"run --camera demo --mqtt off --log error --engine onnxruntime=cpu --model " + model,
			"model " + model + ": the model takes no images: it has 2 inputs, images go to a single one (infer --input runs it on arrays)",
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
	output := programtest.OutputWith(t, environment, "bench", "--model", plan, "--layers", "--batch", "1,2", "--width", "320",
		"--height", "240",
		"--images", "1", "--json")
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
	require.Equal(t, "edge-infer: --layers needs TensorRT, not onnxruntime; see edge-infer bench --help\n",
		stderr.String())
}

// A fleet's test: a document, its comparison with another, and an exit status with one line for each bound that is missed.
func TestBenchRequires(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, other := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	small := []string{
		"bench", "--engine", "onnxruntime=cpu", "--images", "1", "--width", "320", "--height", "240", "--duration", "4x", "--warmup", "1x",
		"--what", "transfers",
	}
	output := programtest.Output(t, append(small, "--batch", "1,2", "--output", one, "--require", "lost<=0")...)
	require.Contains(t, string(output), "flat-out")

	var stderr bytes.Buffer
	command := programtest.Command(t, append(small, "--batch", "1", "--output", other, "--require", "p50@1<1ns,memory<=1KiB", "--json")...)
	command.Stderr = &stderr
	output, err := command.Output()
	require.Error(t, err)
	require.Equal(t, 1, command.ProcessState.ExitCode())
	require.Regexp(t, `^edge-infer: missed: p50@1<1ns: \S+ \(onnxruntime=cpu, fp32, transfers, flat-out, batch 1\)
missed: memory<=1KiB: \S+ MiB \(onnxruntime=cpu, fp32, transfers, flat-out, batch 1\)
$`, stderr.String())
	var document struct {
		Results []map[string]any
	}
	require.NoError(t, json.Unmarshal(output, &document), "the document comes all the same")
	for _, name := range []string{"backend", "fps", "latency_p50_ms", "latency_p99_ms", "latency_p999_ms", "cpu_us_per_frame", "late"} {
		require.Contains(t, document.Results[0], name)
	}

	output = programtest.Output(t, "bench", "--compare", one, other)
	require.Contains(t, string(output), "B/A")
	require.Contains(t, string(output), "only in A: demo, onnxruntime=cpu, fp32, transfers, flat-out, batch 2")
}
