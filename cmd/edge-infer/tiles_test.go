package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestTilesFindSmallParts: on large images, where the network alone sees next to nothing of them.
func TestTilesFindSmallParts(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "3", "--seed", "24", "--width", "1600", "--height", "1200",
		"--part-size", "32").Run())
	measure := func(flags ...string) accuracy.Report {
		output := programtest.Output(t, append([]string{"validate", "--data", data, "--json"}, flags...)...)
		var report accuracy.Report
		require.NoError(t, json.Unmarshal(output, &report))
		return report
	}
	whole, tiled := measure(), measure("--tile", "416", "--overlap", "0.25", "--batch", "4")
	require.Nil(t, whole.Tiles)
	require.Equal(t, 416, tiled.Tiles.Side)
	require.Greater(t, *tiled.MAP, 0.5)
	require.Greater(t, *tiled.MAP, 2**whole.MAP)

	output := programtest.Output(t, "infer", "--model", "demo", filepath.Join(data, "images"), "--json", "--tile", "416", "--batch", "4")
	parts := 0
	for line := range bytes.Lines(output) {
		var seen infer.Seen
		require.NoError(t, json.Unmarshal(line, &seen))
		require.Equal(t, 1600, seen.Width)
		parts += len(seen.Detections)
	}
	objects := 0
	for _, class := range tiled.Classes {
		objects += class.Count
	}
	require.InDelta(t, objects, parts, float64(objects)/4, "of so many objects")
}
