// Package bench measures the frame loop, from the frame in memory to the message handed over, and where a plan's time goes.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/mqtt"
	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Bench measures configurations one after the other.
type Bench struct {
	Batches          []int // pictures in one inference, a run for each
	Duration, Warmup time.Duration
	Cameras          int
	Rate             float64 // frames a second of each camera; 0: as fast as they are taken
	Pictures         int     // distinct ones in memory
	Width, Height    int     // of a picture in pixels

	Config   *config.Config
	Logger   *slog.Logger
	Progress progress.Reporter
}

// Flags are the benchmark's place on a command line.
func (b *Bench) Flags(flags *pflag.FlagSet) {
	flags.IntSliceVar(&b.Batches, "batches", []int{1}, "pictures in one inference, one run for each")
	flags.DurationVar(&b.Duration, "duration", 10*time.Second, "length of each run")
	flags.DurationVar(&b.Warmup, "warmup", 500*time.Millisecond, "time before measuring")
	flags.IntVar(&b.Cameras, "cameras", 1, "cameras that give pictures; without --rate as many as fill a batch")
	flags.Float64Var(&b.Rate, "rate", 0, "frames a second of each camera; 0: as fast as they are taken")
	flags.IntVar(&b.Pictures, "pictures", 64, "distinct pictures in memory")
	flags.IntVar(&b.Width, "width", 1920, "picture width in pixels")
	flags.IntVar(&b.Height, "height", 1080, "picture height in pixels")
}

// Check finds what is wrong with the inputs before any work.
func (b *Bench) Check() error {
	switch {
	case b.Cameras < 1 || b.Cameras > 256 || b.Pictures < 1 || b.Pictures > 1024 || b.Duration <= 0 || b.Warmup < 0 || b.Rate < 0:
		return config.Usagef("--cameras must be 1 to 256, --pictures 1 to 1024, --duration positive")
	case slices.ContainsFunc(b.Batches, func(n int) bool { return n < 1 || n > 256 }):
		return config.Usagef("--batches must be numbers from 1 to 256")
	case b.Rate > 0 && slices.Max(b.Batches) > b.Cameras:
		return config.Usagef("--batches %d with --rate: a camera has one picture at a time, so that takes --cameras %[1]d", slices.Max(b.Batches))
	}
	return nil
}

// Run measures each batch size.
func (b *Bench) Run(ctx context.Context) (Results, error) {
	var all Results
	for _, batch := range b.Batches {
		result, err := b.measure(ctx, batch)
		if err != nil {
			return nil, err
		}
		all = append(all, *result)
	}
	return all, nil
}

// open opens the network for a batch size.
func (b *Bench) open(ctx context.Context, c *config.Config, batch, slots int) (*predict.Network, error) {
	options := network.Options(c, pipeline.Decoded(c.Detect.Confidence), b.Logger)
	options.Build = network.Builder{Progress: b.Progress}.Build
	options.MaxBatch, options.Slots = batch, slots
	return predict.Open(ctx, options)
}

// measure is one run.
func (b *Bench) measure(ctx context.Context, batch int) (*Result, error) {
	n, err := b.open(ctx, b.Config, batch, 0)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	if takes := n.Model().MaxBatch; takes != batch {
		return nil, fmt.Errorf("--batches %d: model %s takes %d pictures in a request, no more and no less (export it with an open batch)",
			batch, n.Model().Path, takes)
	}
	pictures, err := draw(n, b.Pictures, b.Width, b.Height)
	if err != nil {
		return nil, err
	}
	broker := &embedded.Broker{Address: "127.0.0.1:0", Logger: b.Logger}
	if err := broker.Open(); err != nil {
		return nil, err
	}
	defer broker.Close()
	client := &mqtt.Client{Device: "bench", Brokers: []string{broker.URL()}, Logger: slog.New(slog.DiscardHandler)}
	if err := client.Open(); err != nil {
		return nil, err
	}
	defer client.Close()
	go func() { _ = client.Run(ctx) }()

	l, err := b.loop(&requests{Predictor: n}, b.cameras(batch), pictures, client)
	if err != nil {
		return nil, err
	}
	return l.measure(ctx, b, batch)
}

// cameras is how many there are for a batch: a request holds one picture of each, so fewer never fill it.
func (b *Bench) cameras(batch int) int { return max(b.Cameras, batch) }

// loop is a frame loop that is measured.
type loop struct {
	*pipeline.Pipeline
	notify   chan struct{}
	sources  []*memoryCamera
	stages   *stages
	requests *requests
}

// loop makes a frame loop of cameras in memory.
func (b *Bench) loop(n *requests, cameras int, pictures [][]byte, client *mqtt.Client) (*loop, error) {
	l := &loop{notify: make(chan struct{}, 1), stages: newStages(), requests: n}
	reported, labels := b.Config.Detect.Confidence, n.Model().Metadata.Labels
	l.Pipeline = &pipeline.Pipeline{
		Predictor: n, Labels: labels, Notify: l.notify, Sinks: []pipeline.Sink{&sink.Publisher{Client: client}, l.stages},
		Reported: float32(reported), Decoded: float32(pipeline.Decoded(reported)),
	}
	for i := range cameras {
		source := &memoryCamera{pictures: pictures, width: b.Width, height: b.Height, next: uint64(i)}
		if b.Rate > 0 {
			source.interval = time.Duration(float64(time.Second) / b.Rate)
			source.start = capture.Monotonic() + int64(i)*int64(source.interval)/int64(cameras)
		}
		l.sources = append(l.sources, source)
		follower := &pipeline.Follower{Labels: labels, Reported: l.Reported}
		if err := follower.Open(); err != nil {
			return nil, err
		}
		l.Cameras = append(l.Cameras, pipeline.Camera{
			Name: fmt.Sprintf("cam%d", i), Source: source, Lossless: b.Rate == 0, Follower: follower,
		})
	}
	return l, l.Open()
}

// measure runs the loop for as long as b says.
func (l *loop) measure(ctx context.Context, b *Bench, batch int) (*Result, error) {
	run, stop := context.WithCancel(ctx)
	defer stop()
	if b.Rate > 0 {
		go pace(run, l.notify, l.sources)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run(run, nil) }()
	if err := wait(ctx, b.Warmup, done); err != nil {
		return nil, err
	}
	l.stages.on.Store(true)
	first, before, started := l.Stats(), cpuTime(), time.Now()
	requestsBefore, picturesBefore := l.requests.counts()
	if err := wait(ctx, b.Duration, done); err != nil {
		return nil, err
	}
	last, elapsed, used := l.Stats(), time.Since(started), cpuTime()-before
	requests, pictures := l.requests.counts()
	stop()
	if err := <-done; err != nil {
		return nil, err
	}
	model := l.Model()
	result := &Result{
		Backend: model.Backend, Version: model.BackendVersion, Device: model.Device, Precision: model.Precision, Batch: batch,
		Cameras: len(l.sources),
		Stages:  l.stages.medians(), Filled: float64(pictures-picturesBefore) / float64(max(requests-requestsBefore, 1)),
		reason: l.requests.failed,
	}
	least, most := ^uint64(0), uint64(0)
	for i := range last {
		frames := last[i].Inferred - first[i].Inferred
		result.Frames += frames
		least, most = min(least, frames), max(most, frames)
		result.P50, result.P99 = max(result.P50, milliseconds(last[i].P50)), max(result.P99, milliseconds(last[i].P99))
		result.P999, result.Max = max(result.P999, milliseconds(last[i].P999)), max(result.Max, milliseconds(last[i].Max))
	}
	for _, camera := range l.Totals() {
		result.Lost += camera.Failed
	}
	for _, source := range l.sources {
		result.Skipped += source.displaced
	}
	result.FPS = float64(result.Frames) / elapsed.Seconds()
	result.CPU = float64(used.Microseconds()) / float64(max(result.Frames, 1))
	result.Fairness = float64(least) / float64(max(most, 1))
	return result, nil
}

// wait ends early with what ended the loop.
func wait(ctx context.Context, d time.Duration, done <-chan error) error {
	select {
	case <-time.After(d):
		return nil
	case err := <-done:
		return cmp.Or(err, context.Cause(ctx))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// cpuTime is what this process has used on all CPUs, user and system.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
