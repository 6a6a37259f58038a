package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

func TestBenchLayers(t *testing.T) {
	t.Parallel()
	environment, model := fakeMachine(t, 100300)
	plan := filepath.Join(t.TempDir(), "belt.plan")
	_, text, err := buildOf(t, environment, model, "--precision", "fp16", "--batch", "2", "-o", plan)
	require.NoError(t, err, text)
	output, err := commandWith(t, environment, "bench", "--model", plan, "--layers", "--batches", "1,2", "--width", "320", "--height", "240", "--pictures", "1", "--json").Output()
	require.NoError(t, err)
	var found struct{ Profiles []layerProfile }
	require.NoError(t, json.Unmarshal(output, &found))
	require.Len(t, found.Profiles, 2)
	p := found.Profiles[1]
	require.Equal(t, 2, p.Batch)
	require.Equal(t, "fp16", p.Layers[0].Precision)
	require.InDelta(t, 250, p.Layers[0].Mean, 0)
	require.Equal(t, map[string]*placed{"GPU fp16": {len(p.Layers), p.Total, 1}}, p.Placement)

	c := commandWith(t, environment, "bench", "--layers", "--engine", "onnxruntime")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	require.Error(t, c.Run())
	require.Equal(t, "edge-infer: --layers: only TensorRT tells its layers' times, not onnxruntime; see edge-infer bench --help\n", stderr.String())
}

func TestLayerProfile(t *testing.T) {
	p := &layerProfile{Version: "10.3.0", Device: "Orin", Precision: "int8", Batch: 1}
	p.add([]tensorrt.LayerTime{
		{Layer: "a", Time: 10 * time.Microsecond},
		{Layer: "copy", Time: 5 * time.Microsecond},
		{Layer: "a", Time: 20 * time.Microsecond},
		{Layer: "new", Time: 5 * time.Microsecond},
	}, []tensorrt.Layer{
		{Name: "a", Precision: "int8", Device: "GPU", Kind: "Conv"},
		{Name: "unused"},
		{Name: "a", Precision: "fp16", Device: "DLA"},
		{Name: "copy", Precision: "fp16", Device: "GPU"},
	})
	var text bytes.Buffer
	require.NoError(t, p.print(&text))
	require.Equal(t, `tensorrt 10.3.0 on Orin, int8, batch 1: 4 layers, 40.0 us layer by layer
mean us  share   device  precision  kind  layer
20.0     50.0 %  DLA     fp16       -     a
10.0     25.0 %  GPU     int8       Conv  a
5.0      12.5 %  GPU     fp16       -     copy
5.0      12.5 %  GPU     -          -     new
DLA fp16: 1 layers, 20.0 us, 50.0 %
GPU fp16: 1 layers, 5.0 us, 12.5 %
GPU int8: 1 layers, 10.0 us, 25.0 %
GPU unknown: 1 layers, 5.0 us, 12.5 %
`, text.String())
}
