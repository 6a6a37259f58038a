package bench

import (
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// sleeper is a network that takes its time without the processor, as a GPU does: in a call into the kernel, from which the goroutine has to
// come back.
type sleeper struct {
	predict.Predictor
	takes   time.Duration
	results [2]predict.BatchResult
	until   [2]int64
}

func (*sleeper) Model() predict.Model { return predict.Model{Model: engine.Model{MaxBatch: 1}} }
func (*sleeper) Slots() int           { return 2 }

func (s *sleeper) Submit(slot int, images []engine.Image) error {
	s.results[slot].Results = s.results[slot].Results[:0]
	for range images {
		s.results[slot].Results = append(s.results[slot].Results, predict.Result{})
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	s.results[slot].Timing.Submitted = now.Nano()
	s.until[slot] = now.Nano() + int64(s.takes)
	return nil
}

func (s *sleeper) Wait(slot int) (*predict.BatchResult, error) {
	sleepUntil(s.until[slot])
	s.results[slot].Timing.Done = s.until[slot]
	return &s.results[slot], nil
}

// programThreads are as those of a run.
func programThreads() *process.ThreadScheduling {
	return &process.Apply(process.DefaultSettings(), "", slog.New(slog.DiscardHandler)).Capture
}

// tail is the 99th percentile of the frame loop's latency over frames of 100 a second, with busy goroutines beside it.
func tail(b *testing.B, processors, burden int) time.Duration {
	b.Helper()
	before := runtime.GOMAXPROCS(processors)
	defer runtime.GOMAXPROCS(before)
	stop := make(chan struct{}, 1)
	var busy sync.WaitGroup
	for range burden {
		busy.Go(func() {
			for len(stop) == 0 {
			}
		})
	}
	defer busy.Wait()
	defer func() { stop <- struct{}{} }()
	bench := newTestBench()
	if processors == process.DefaultProcessors() {
		bench.threads = programThreads()
	}
	bench.Cameras, bench.Width, bench.Height, bench.Rate, bench.Logger = 1, 2, 2, 100, slog.New(slog.DiscardHandler)
	bench.Warmup, bench.Duration = extent{time: 100 * time.Millisecond}, extent{time: 1500 * time.Millisecond}
	q := &requests{Predictor: &sleeper{takes: 2 * time.Millisecond}, batch: 1}
	l, err := newLoop(bench, bench.Contenders[0], q, Paced, [][]byte{make([]byte, 12)}, nil, nil)
	require.NoError(b, err)
	m := newMeter()
	defer m.close()
	r := Result{Drive: Paced}
	require.NoError(b, l.measure(b.Context(), bench, m, &r, 0))
	return time.Duration(r.P99 * float64(time.Millisecond))
}

// BenchmarkLoadedTail says how much later frames come through when every CPU has a busy goroutine: with the number of Go processors that
// the program sets, and with one for each CPU, which is Go's own. In turns.
func BenchmarkLoadedTail(b *testing.B) {
	cpus, processors := runtime.NumCPU(), process.DefaultProcessors()
	var ours, naive, quiet []float64
	for b.Loop() {
		for _, one := range []struct {
			values             *[]float64
			processors, burden int
		}{{&quiet, processors, 0}, {&ours, processors, cpus}, {&naive, cpus, cpus}, {&naive, cpus, cpus}, {&ours, processors, cpus}} {
			*one.values = append(*one.values, float64(tail(b, one.processors, one.burden))/1e3)
		}
	}
	mean := func(values []float64) (sum float64) {
		for _, v := range values {
			sum += v / float64(len(values))
		}
		return sum
	}
	added, plain := max(mean(ours)-mean(quiet), 0), mean(naive)-mean(quiet)
	b.ReportMetric(added, "added-p99-us")
	b.ReportMetric(plain, "naive-added-p99-us")
	if plain > 0 { // else the machine was too busy to tell them apart
		b.ReportMetric(added/plain, "ours/naive")
	}
	b.ReportMetric(0, "ns/op")
}
