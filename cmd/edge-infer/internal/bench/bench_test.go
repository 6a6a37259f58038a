package bench

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

func TestBench(t *testing.T) {
	b := &Bench{Config: config.Default(), Logger: slog.New(slog.DiscardHandler)}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	b.Flags(flags)
	require.NoError(t, flags.Parse([]string{
		"--duration", "500ms", "--warmup", "50ms", "--pictures", "2", "--width", "320", "--height", "240", "--batches", "1,2", "--cameras", "2",
	}))
	require.NoError(t, b.Check())
	results, err := b.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, results, 2)
	for i, result := range results {
		require.Equal(t, i+1, result.Batch)
		require.Equal(t, "onnxruntime", result.Backend)
		require.Positive(t, result.Frames)
		require.Positive(t, result.CPU)
		require.LessOrEqual(t, result.P50, result.P99)
	}
	var text bytes.Buffer
	require.NoError(t, results.Print(&text))
	require.Regexp(t, `^ *onnxruntime \S+ on CPU, .*\n +batch +cameras +fps .*\n +1 +2 .*\n +2 +2 .*\n$`, text.String())
}

func TestMemoryCameraCountsWhatItReplaces(t *testing.T) {
	c := memoryCamera{pictures: [][]byte{make([]byte, 12)}, width: 2, height: 2, interval: 1000}
	frame, ok := c.Take()
	require.True(t, ok, "many frames have been due since the clock's beginning")
	require.Equal(t, c.displaced, frame.Seq)
	require.Zero(t, frame.Captured%1000)
}
