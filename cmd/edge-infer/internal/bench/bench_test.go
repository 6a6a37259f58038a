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
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func newTestBench() *Bench {
	return &Bench{
		Contenders: []Contender{{config.Auto, config.Default()}}, Logger: slog.New(slog.DiscardHandler), MQTT: embeddedBroker, Batches: []int{1},
	}
}

func TestBench(t *testing.T) {
	b := newTestBench()
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	b.Flags(flags)
	require.NoError(t, flags.Parse([]string{
		"--duration", "500ms", "--warmup", "50ms", "--images", "2", "--width", "320", "--height", "240", "--batch", "1,5", "--cameras", "2",
	}))
	require.NoError(t, b.Check())
	report, err := b.Run(t.Context())
	require.NoError(t, err)
	require.Len(t, report.Results, 2)
	for i, result := range report.Results {
		require.Equal(t, []int{1, 5}[i], result.Batch)
		require.InDelta(t, result.Batch, result.Filled, 0, "every request is full")
		require.Equal(t, []int{2, 5}[i], result.Cameras)
		require.Zero(t, result.Lost)
		require.Equal(t, "onnxruntime", result.Backend)
		require.Positive(t, result.Frames)
		require.Positive(t, result.CPU)
		require.LessOrEqual(t, result.P50, result.P99)
		var stages []string
		for _, c := range result.Clocks {
			stages = append(stages, c.Stage)
			require.Positive(t, c.Count, c.Stage)
			require.LessOrEqual(t, c.P50, c.P99, c.Stage)
		}
		require.Subset(t, stages, []string{"queue", "waiting", "letterbox", "network", "decode", "track", "encode", "hand_off"})
	}
	require.NoError(t, b.Judge(report))
	var text bytes.Buffer
	require.NoError(t, report.Print(&text))
	require.Regexp(t, `^ *onnxruntime \S+ on CPU, .*\n.*\n +engine +what +drive +batch +fps .*\n`+
		` +auto +loop +flat-out +1 .*\n +auto +loop +flat-out +5 .*\nstages of auto, flat-out, batch 1 +count +p50 ms .*\n`+
		`(?s:.*)  network +\d+ (?s:.*)\nload of`, text.String())
}

func TestBatchesThatCannotBeFilled(t *testing.T) {
	b := newTestBench()
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	b.Flags(flags)
	require.NoError(t, flags.Parse([]string{"--batch", "1,4", "--rate", "30", "--cameras", "2"}))
	require.EqualError(t, b.Check(), "--batch 4 with --rate: a camera has one image at a time, so that takes --cameras 4")
	b.Cameras = 4
	require.NoError(t, b.Check())
}

// forgetful loses every second request.
type forgetful struct {
	predict.Predictor
	results [1]predict.BatchResult
	asked   int
}

func (*forgetful) Model() predict.Model { return predict.Model{Model: engine.Model{MaxBatch: 2}} }
func (*forgetful) Slots() int           { return 1 }

func (f *forgetful) Submit(_ int, images []engine.Image) error {
	f.results[0].Results = make([]predict.Result, len(images))
	if f.asked++; f.asked%2 == 0 {
		return errors.New("out of memory")
	}
	return nil
}

func (f *forgetful) Wait(int) (*predict.BatchResult, error) { return &f.results[0], nil }

func TestLostRequestsAreAnError(t *testing.T) {
	b := newTestBench()
	b.Cameras, b.Width, b.Height, b.Duration = 1, 2, 2, extent{time: 50 * time.Millisecond}
	l, err := newLoop(b, b.Contenders[0], &requests{Predictor: &forgetful{}, batch: 2}, FlatOut, [][]byte{make([]byte, 12)}, nil, nil)
	require.NoError(t, err)
	m := newMeter()
	defer m.close()
	r := Result{Batch: 2}
	require.NoError(t, l.measure(t.Context(), b, m, &r, 0))
	require.Positive(t, r.Lost)
	require.Positive(t, r.Frames)
	require.EqualError(t, b.Judge(&Report{Results: []Result{r}}),
		fmt.Sprintf("bench: batch 2: %d frames were lost and are not part of the figures: out of memory", r.Lost))
}

func TestMemoryCameraCountsWhatItReplaces(t *testing.T) {
	c := memoryCamera{images: [][]byte{make([]byte, 12)}, width: 2, height: 2, interval: 1000}
	frame, ok := c.Take()
	require.True(t, ok, "many frames have been due since the clock's beginning")
	require.Equal(t, c.dropped.Load(), frame.Seq)
	require.Zero(t, frame.Captured%1000)
}
