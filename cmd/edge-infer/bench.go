package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt"
)

func newBench(stdout, stderr io.Writer) *cobra.Command {
	var f runFlags
	b := &bench{stderr: stderr}
	command := &cobra.Command{
		Use: "bench", Short: "Measure the frame loop from frame in memory to message handed over", Args: noArguments,
		Long: `Runs the frame loop flat out on pictures of the demo belt that lie in memory, with tracking and with messages to an embedded broker, and
prints rate, latency and CPU time a frame. With --rate the cameras give frames at that rate instead, as real ones do.

With --layers it does not run the loop but says where one request's time goes on TensorRT: each layer's mean time, its precision and whether
it runs on the GPU or a DLA, and how many layers run in which precision. Layers one by one take longer than the network as a whole.

  edge-infer bench --cameras 4 --batches 1,4 --duration 10s
  edge-infer bench --model yolo11n.onnx --engine tensorrt --rate 30 --cameras 8 --json
  edge-infer bench --model yolo11n.plan --layers`,
		RunE: func(command *cobra.Command, _ []string) error {
			f.cameras = []string{"demo"}
			c, err := f.configuration(command.Flags())
			if err != nil {
				return err
			}
			if b.cameras < 1 || b.cameras > 256 || b.ring < 1 || b.ring > 1024 || b.duration <= 0 || b.warmup < 0 || b.rate < 0 {
				return usagef("--cameras must be 1 to 256, --pictures 1 to 1024, --duration positive")
			}
			if slices.ContainsFunc(b.batches, func(n int) bool { return n < 1 || n > 256 }) {
				return usagef("--batches must be numbers from 1 to 256")
			}
			b.config = c
			if b.layers {
				return b.printProfiles(command.Context(), stdout, f.json)
			}
			var results []benchResult
			for _, batch := range b.batches {
				result, err := b.run(command.Context(), batch)
				if err != nil {
					return err
				}
				results = append(results, *result)
			}
			if f.json {
				return json.NewEncoder(stdout).Encode(map[string]any{"v": 1, "results": results})
			}
			return printBench(stdout, results)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.IntSliceVar(&b.batches, "batches", []int{1}, "pictures in one inference, one run for each")
	flags.DurationVar(&b.duration, "duration", 10*time.Second, "length of each run")
	flags.DurationVar(&b.warmup, "warmup", 500*time.Millisecond, "time before measuring")
	flags.IntVar(&b.cameras, "cameras", 1, "cameras that give pictures")
	flags.Float64Var(&b.rate, "rate", 0, "frames a second of each camera; 0: as fast as they are taken")
	flags.IntVar(&b.ring, "pictures", 64, "distinct pictures in memory")
	flags.IntVar(&b.width, "width", 1920, "picture width in pixels")
	flags.IntVar(&b.height, "height", 1080, "picture height in pixels")
	flags.BoolVar(&b.layers, "layers", false, "time the layers of TensorRT's plan instead of the loop")
	config.InferenceFlags(config.Default(), flags)
	flags.StringVar(&f.file, "config", "", "YAML file; edge-infer config defaults prints one")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return command
}

// bench measures one configuration.
type bench struct {
	config           *config.Config
	stderr           io.Writer
	batches          []int
	duration, warmup time.Duration
	cameras, ring    int
	width, height    int
	rate             float64
	layers           bool
}

// benchResult is what one run came to. Latencies run from the frame's arrival to the message's hand-over.
type benchResult struct {
	Backend   string           `json:"backend"`
	Version   string           `json:"version"`
	Device    string           `json:"device"`
	Precision engine.Precision `json:"precision"`
	Batch     int              `json:"batch"`
	Cameras   int              `json:"cameras"`
	Frames    uint64           `json:"frames"`
	FPS       float64          `json:"fps"`
	P50       float64          `json:"latency_p50_ms"`
	P99       float64          `json:"latency_p99_ms"`
	P999      float64          `json:"latency_p999_ms"`
	Max       float64          `json:"latency_max_ms"`
	Stages    stageMedians     `json:"stages"`
	CPU       float64          `json:"cpu_us_per_frame"`
	Fairness  float64          `json:"fairness"` // slowest camera's frames over the fastest's
	Skipped   uint64           `json:"late"`     // frames that a newer one displaced
}

// stageMedians says where the time of a frame goes, as medians in milliseconds: from arrival to submission, to the end of the network, to the
// message's hand-over.
type stageMedians struct {
	Submit  float64 `json:"submit_p50_ms"`
	Network float64 `json:"network_p50_ms"`
	Publish float64 `json:"publish_p50_ms"`
}

func (b *bench) run(ctx context.Context, batch int) (*benchResult, error) {
	options, err := modelOptions(b.config, batch, b.config.Detect.Confidence)
	if err != nil {
		return nil, err
	}
	options.MaxBatch = batch
	e, err := openEngine(ctx, b.config, options, newLogger(b.stderr, b.config.Log), b.stderr)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	detector, err := openDetector(b.config, e.Model(), pipeline.LowestScore(b.config.Detect.Confidence))
	if err != nil {
		return nil, err
	}
	pictures, err := b.draw(e)
	if err != nil {
		return nil, err
	}
	broker := &mqtt.Broker{Address: "127.0.0.1:0", Logger: newLogger(b.stderr, b.config.Log)}
	if err := broker.Open(); err != nil {
		return nil, err
	}
	defer broker.Close()
	client := &mqtt.Client{Device: "bench", Brokers: []string{broker.URL()}, Logger: newLogger(b.stderr, "error")}
	if err := client.Open(); err != nil {
		return nil, err
	}
	defer client.Close()
	go func() { _ = client.Run(ctx) }()

	model := e.Model()
	notify := make(chan struct{}, 1)
	stages := newStages()
	p := &pipeline.Pipeline{
		Engine: e, Decoder: detector, Labels: model.Metadata.Labels, Notify: notify, Sinks: []pipeline.Sink{&publisher{client: client}, stages},
		Confidence: float32(b.config.Detect.Confidence), LowestScore: float32(pipeline.LowestScore(b.config.Detect.Confidence)),
	}
	var sources []*memoryCamera
	for i := range b.cameras {
		source := &memoryCamera{pictures: pictures, width: b.width, height: b.height, next: uint64(i)}
		if b.rate > 0 {
			source.interval = time.Duration(float64(time.Second) / b.rate)
			source.start = capture.Monotonic() + int64(i)*int64(source.interval)/int64(b.cameras)
		}
		sources = append(sources, source)
		follower := &pipeline.Follower{Labels: model.Metadata.Labels, Confidence: p.Confidence}
		if err := follower.Open(); err != nil {
			return nil, err
		}
		p.Cameras = append(p.Cameras, pipeline.Camera{Name: fmt.Sprintf("cam%d", i), Source: source, Lossless: b.rate == 0, Follower: follower})
	}
	if err := p.Open(); err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	if b.rate > 0 {
		go pace(run, notify, sources)
	}
	done := make(chan error, 1)
	go func() { done <- p.Run(run, nil) }()
	if err := wait(ctx, b.warmup); err != nil {
		return nil, err
	}
	stages.on.Store(true)
	first, before, started := p.Stats(), cpuTime(), time.Now()
	if err := wait(ctx, b.duration); err != nil {
		return nil, err
	}
	last, elapsed, used := p.Stats(), time.Since(started), cpuTime()-before
	stop()
	if err := <-done; err != nil {
		return nil, err
	}
	result := &benchResult{
		Stages:  stages.medians(),
		Backend: model.Backend, Version: model.BackendVersion, Device: model.Device, Precision: model.Precision, Batch: batch, Cameras: b.cameras,
	}
	least, most := ^uint64(0), uint64(0)
	for i := range last {
		frames := last[i].Inferred - first[i].Inferred
		result.Frames += frames
		least, most = min(least, frames), max(most, frames)
		result.P50, result.P99 = max(result.P50, milliseconds(last[i].P50)), max(result.P99, milliseconds(last[i].P99))
		result.P999, result.Max = max(result.P999, milliseconds(last[i].P999)), max(result.Max, milliseconds(last[i].Max))
	}
	for _, source := range sources {
		result.Skipped += source.displaced
	}
	result.FPS = float64(result.Frames) / elapsed.Seconds()
	result.CPU = float64(used.Microseconds()) / float64(max(result.Frames, 1))
	result.Fairness = float64(least) / float64(max(most, 1))
	return result, nil
}

// stages notes when each frame went on, as the last sink.
type stages struct {
	on      atomic.Bool
	samples [3][]int64 // nanoseconds
}

func newStages() *stages {
	s := &stages{}
	for i := range s.samples {
		s.samples[i] = make([]int64, 0, 1<<18) // so that a short run does not allocate
	}
	return s
}

// Frame implements pipeline.Sink.
func (s *stages) Frame(in *pipeline.Inferred) {
	if in.Frame == nil || !s.on.Load() {
		return
	}
	s.samples[0] = append(s.samples[0], in.Timing.Submitted-in.Captured)
	s.samples[1] = append(s.samples[1], in.Timing.Done-in.Timing.Submitted)
	s.samples[2] = append(s.samples[2], capture.Monotonic()-in.Timing.Done)
}

// medians may be called when the frame loop has ended.
func (s *stages) medians() stageMedians {
	var medians [3]float64
	for i, samples := range s.samples {
		if len(samples) > 0 {
			slices.Sort(samples)
			medians[i] = milliseconds(time.Duration(samples[len(samples)/2]))
		}
	}
	return stageMedians{medians[0], medians[1], medians[2]}
}

// draw puts pictures of the demo belt into the engine's memory.
func (b *bench) draw(e engine.Engine) ([][]byte, error) {
	belt := &scene.Scene{Width: b.width, Height: b.height, Seed: 1}
	if err := belt.Open(); err != nil {
		return nil, err
	}
	stride := capture.BGR.RowBytes(b.width)
	pictures := make([][]byte, b.ring)
	var truth []scene.Part
	for i := range pictures {
		buffer, err := e.Alloc(stride * b.height)
		if err != nil {
			return nil, err
		}
		pictures[i] = buffer.Data
		if truth, err = belt.Draw(i*7, buffer.Data, stride, truth[:0]); err != nil {
			return nil, err
		}
	}
	return pictures, nil
}

// memoryCamera gives pictures that lie in memory, always or at a rate.
type memoryCamera struct {
	pictures      [][]byte
	width, height int
	interval      time.Duration // 0 for always
	start         int64         // CLOCK_MONOTONIC of the first frame
	next          uint64        // sequence number
	displaced     uint64        // frames that were due and replaced by the next one before they were taken
}

// Take implements pipeline.Source.
func (c *memoryCamera) Take() (capture.Frame, bool) {
	now := capture.Monotonic()
	captured := now
	if c.interval > 0 {
		due := (now - c.start) / int64(c.interval)
		if now < c.start || uint64(due) < c.next {
			return capture.Frame{}, false
		}
		c.displaced += uint64(due) - c.next
		c.next = uint64(due)
		captured = c.start + due*int64(c.interval)
	}
	frame := capture.Frame{
		Data: c.pictures[c.next%uint64(len(c.pictures))], Width: c.width, Height: c.height, Stride: capture.BGR.RowBytes(c.width), Format: capture.BGR,
		Seq: c.next, Captured: captured, Time: time.Now(),
	}
	c.next++
	return frame, true
}

// pace wakes the frame loop at the moment a frame falls due. Go's timers may be a millisecond late, which would be measured as latency, so
// it sleeps in the kernel, and then gives way as a camera does.
func pace(ctx context.Context, notify chan<- struct{}, sources []*memoryCamera) {
	for n := int64(0); ; n++ {
		for _, source := range sources { // in the order in which they fall due
			due := unix.NsecToTimespec(source.start + n*int64(source.interval))
			_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of whatever thread this runs on; else it may be late by 50 microseconds
			for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &due, nil) == unix.EINTR {
			}
			if ctx.Err() != nil {
				return
			}
			select {
			case notify <- struct{}{}:
				runtime.Gosched()
			default:
			}
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
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

func printBench(out io.Writer, results []benchResult) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%s %s on %s, %s\n", results[0].Backend, results[0].Version, results[0].Device, results[0].Precision)
	fmt.Fprintln(table, "batch\tcameras\tfps\tp50 ms\tp99 ms\tp99.9 ms\tmax ms\tCPU us/frame\tfairness\tlate\t")
	for _, r := range results {
		fmt.Fprintf(table, "%d\t%d\t%.1f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\t%.3f\t%d\t\n", r.Batch, r.Cameras, r.FPS, r.P50, r.P99, r.P999, r.Max, r.CPU, r.Fairness, r.Skipped)
	}
	return table.Flush()
}
