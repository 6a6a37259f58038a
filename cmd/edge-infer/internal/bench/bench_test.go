package bench

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func TestBench(t *testing.T) {
	b := &Bench{Config: config.Default(), Logger: slog.New(slog.DiscardHandler)}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	b.Flags(flags)
	require.NoError(t, flags.Parse([]string{
		"--duration", "500ms", "--warmup", "50ms", "--pictures", "2", "--width", "320", "--height", "240", "--batches", "1,5", "--cameras", "2",
	}))
	require.NoError(t, b.Check())
	results, err := b.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, results, 2)
	for i, result := range results {
		require.Equal(t, []int{1, 5}[i], result.Batch)
		require.InDelta(t, result.Batch, result.Filled, 0, "every request is full")
		require.Equal(t, []int{2, 5}[i], result.Cameras)
		require.Zero(t, result.Lost)
		require.Equal(t, "onnxruntime", result.Backend)
		require.Positive(t, result.Frames)
		require.Positive(t, result.CPU)
		require.LessOrEqual(t, result.P50, result.P99)
	}
	require.NoError(t, results.Err())
	var text bytes.Buffer
	require.NoError(t, results.Print(&text))
	require.Regexp(t, `^ *onnxruntime \S+ on CPU, .*\n +batch +cameras +filled +fps .*\n +1 +2 +1\.0 .*\n +5 +5 +5\.0 .*\n$`, text.String())
}

func TestBatchesThatCannotBeFilled(t *testing.T) {
	b := &Bench{Config: config.Default(), Logger: slog.New(slog.DiscardHandler)}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	b.Flags(flags)
	require.NoError(t, flags.Parse([]string{"--batches", "1,4", "--rate", "30", "--cameras", "2"}))
	require.EqualError(t, b.Check(), "--batches 4 with --rate: a camera has one picture at a time, so that takes --cameras 4")
	b.Cameras = 4
	require.NoError(t, b.Check())
}

// forgetful loses every second request.
type forgetful struct {
	results [1]predict.Result
	asked   int
}

func (*forgetful) Model() predict.Model { return predict.Model{Model: engine.Model{MaxBatch: 2}} }
func (*forgetful) Slots() int           { return 1 }

func (f *forgetful) Submit(_ int, pictures []engine.Image) error {
	f.results[0].Pictures = make([]predict.Picture, len(pictures))
	if f.asked++; f.asked%2 == 0 {
		return errors.New("out of memory")
	}
	return nil
}

func (f *forgetful) Wait(int) (*predict.Result, error) { return &f.results[0], nil }

func TestLostRequestsAreAnError(t *testing.T) {
	b := &Bench{
		Config: config.Default(), Logger: slog.New(slog.DiscardHandler), Cameras: 1, Width: 2, Height: 2, Duration: 50 * time.Millisecond,
	}
	client := &mqtt.Client{Device: "bench", Brokers: []string{"tcp://127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, client.Open())
	defer client.Close()
	l, err := b.loop(&requests{Predictor: &forgetful{}}, b.cameras(2), [][]byte{make([]byte, 12)}, client)
	require.NoError(t, err)
	l.Logger = slog.New(slog.DiscardHandler)
	result, err := l.measure(t.Context(), b, 2)
	require.NoError(t, err)
	require.Positive(t, result.Lost)
	require.Positive(t, result.Frames)
	require.EqualError(t, Results{*result}.Err(),
		fmt.Sprintf("bench: batch 2: %d frames were lost, the figures count the others: out of memory", result.Lost))
}

func TestMemoryCameraCountsWhatItReplaces(t *testing.T) {
	c := memoryCamera{pictures: [][]byte{make([]byte, 12)}, width: 2, height: 2, interval: 1000}
	frame, ok := c.Take()
	require.True(t, ok, "many frames have been due since the clock's beginning")
	require.Equal(t, c.displaced, frame.Seq)
	require.Zero(t, frame.Captured%1000)
}
