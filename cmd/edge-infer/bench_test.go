package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBench(t *testing.T) {
	output, err := command(t, "bench", "--duration", "500ms", "--warmup", "50ms", "--pictures", "2", "--width", "320", "--height", "240", "--batches", "1,2",
		"--cameras", "2", "--json").Output()
	require.NoError(t, err)
	var report struct{ Results []benchResult }
	require.NoError(t, json.Unmarshal(output, &report))
	require.Len(t, report.Results, 2)
	for i, result := range report.Results {
		require.Equal(t, i+1, result.Batch)
		require.Equal(t, "onnxruntime", result.Backend)
		require.Positive(t, result.Frames)
		require.Positive(t, result.CPU)
		require.LessOrEqual(t, result.P50, result.P99)
	}
}

func TestMemoryCameraCountsWhatItReplaces(t *testing.T) {
	c := memoryCamera{pictures: [][]byte{make([]byte, 12)}, width: 2, height: 2, interval: 1000}
	frame, ok := c.Take()
	require.True(t, ok, "many frames have been due since the clock's beginning")
	require.Equal(t, c.displaced, frame.Seq)
	require.Zero(t, frame.Captured%1000)
}
