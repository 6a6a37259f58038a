// Package bench measures a network: its inference time on the device, with transfers, and in the frame loop from the frame in memory to the
// published message; and the time of each layer of an engine plan.
package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Bench measures one or more engines, one after the other.
type Bench struct {
	What             []string // values of What, or all; none: the loop, or engine and transfers for a network without image input
	Drives           []string // values of Drive; none: flat out, or paced with a Rate
	Batches          []int    // images per request, one run for each
	Duration, Warmup extent
	Cameras          int
	Rate             float64 // frames per second of each camera in paced runs
	Slots            int     // requests in flight; 0 for the backend's default
	Spin             bool    // ONNX Runtime's threads busy-wait
	Images           int     // distinct images in memory
	Width, Height    int     // image size in pixels
	Shapes           []string
	MQTT             string // embedded, off or a broker's address
	WaitIdle         time.Duration
	Output           string // file of the document
	Plots            string // directory of the plots
	Require          string
	Level            int // optimization level for a missing engine plan, -1 for the builder's default

	Contenders []Contender
	Program    string // version of this program, for the document
	Logger     *slog.Logger
	Progress   progress.Reporter

	threads *process.ThreadScheduling // of the camera and loop threads; nil for the default
	require []Requirement
	shapes  map[string][]int64
}

// Contender is an engine to measure with its configuration.
type Contender struct {
	Engine string
	*config.Config
}

// Flags adds the flags of the benchmark.
func (b *Bench) Flags(flags *pflag.FlagSet) {
	b.Duration, b.Warmup = extent{time: 10 * time.Second}, extent{time: 500 * time.Millisecond}
	flags.StringSliceVar(&b.What, "what", nil, "engine, transfers, loop or all, several separated by commas (default loop)")
	flags.StringSliceVar(&b.Drives, "drive", nil, "closed, flat-out or paced, or several of them (default flat-out; paced with --rate)")
	flags.IntSliceVar(&b.Batches, "batch", []int{1}, "images per request, one run for each")
	flags.Var(&b.Duration, "duration", "length of each run: a time, or frames like 24576x")
	flags.Var(&b.Warmup, "warmup", "time before the measurement, or frames like 200x")
	flags.IntVar(&b.Cameras, "cameras", 1, "number of cameras; without --rate at least as many as the batch")
	flags.Float64Var(&b.Rate, "rate", 0, "frames per second of each camera for paced runs; 0: as fast as possible")
	flags.IntVar(&b.Slots, "slots", 0, "requests in flight when flat out; 0: the engine's default")
	flags.BoolVar(&b.Spin, "spin", false, "ONNX Runtime's CPU threads busy-wait: faster on an idle machine, slower on a loaded one")
	flags.IntVar(&b.Images, "images", 64, "distinct images in memory")
	flags.IntVar(&b.Width, "width", 1920, "image width in pixels")
	flags.IntVar(&b.Height, "height", 1080, "image height in pixels")
	flags.StringArrayVar(&b.Shapes, "shape", nil, "shape of a tensor input with dynamic dimensions: NAME=1,3,224,224")
	flags.StringVar(&b.MQTT, "mqtt", "embedded", "broker for the loop's messages: embedded, off, or an address")
	flags.DurationVar(&b.WaitIdle, "wait-idle", 0, "wait at most this long until the machine has been idle for a second")
	flags.StringVar(&b.Output, "output", "", "also write the JSON document to this file")
	flags.StringVar(&b.Plots, "plots", "", "draw latency, throughput and memory by batch size into this directory, as SVG and PNG")
	flags.StringVar(&b.Require, "require", "", "fail unless p99<=1ms,throughput>=10000,memory<=512MiB; see above")
	flags.IntVar(&b.Level, "opt-level", -1, "TensorRT builder optimization level for a missing plan, 0 to 5; -1: default")
}

// Check validates the settings.
func (b *Bench) Check() (err error) {
	switch {
	case b.Cameras < 1 || b.Cameras > 256 || b.Images < 1 || b.Images > 1024 || b.Duration == (extent{}) || !(b.Rate >= 0):
		return config.Usagef("--cameras must be 1 to 256, --images 1 to 1024, --duration and --rate positive")
	case b.Rate != 0 && !(b.Rate >= 0.01 && b.Rate <= 1e6):
		return config.Usagef("--rate must be 0.01 to 1000000 frames a second, or 0")
	case slices.Equal(b.What, []string{string(Engine)}) &&
		(b.Rate > 0 || slices.ContainsFunc(b.Drives, func(drive string) bool { return Drive(drive) != Closed })):
		return config.Usagef("--what engine is one request after another: --rate and --drive are for transfers and loop")
	case b.Width < 1 || b.Width > engine.MaxSide || b.Height < 1 || b.Height > engine.MaxSide:
		return config.Usagef("--width and --height must be 1 to %d", engine.MaxSide)
	case b.WaitIdle < 0:
		return config.Usagef("--wait-idle must not be negative")
	case b.Slots < 0 || b.Slots > 64:
		return config.Usagef("--slots must be 0 to 64")
	case b.Level < -1 || b.Level > 5:
		return config.Usagef("--opt-level must be 0 to 5, or -1")
	case len(b.Batches) == 0 || slices.ContainsFunc(b.Batches, func(n int) bool { return n < 1 || n > 256 }):
		return config.Usagef("--batch must be numbers from 1 to 256")
	case b.Rate > 0 && slices.Max(b.Batches) > b.Cameras:
		return config.Usagef("--batch %d with --rate: a camera has one image at a time, so that takes --cameras %[1]d", slices.Max(b.Batches))
	}
	for _, what := range b.What {
		if !slices.Contains([]string{"all", string(Engine), string(Transfers), string(Loop)}, what) {
			return config.Usagef("--what %q: must be engine, transfers, loop or all", what)
		}
	}
	for _, drive := range b.Drives {
		switch Drive(drive) {
		case Closed, FlatOut:
		case Paced:
			if b.Rate == 0 {
				return config.Usagef("--drive paced needs --rate, the frames a second of each camera")
			}
		default:
			return config.Usagef("--drive %q: must be closed, flat-out or paced", drive)
		}
	}
	if b.Require != "" {
		if b.require, err = ParseRequirements(b.Require); err != nil {
			return config.Usagef("--require %v", err)
		}
	}
	if b.shapes, err = shapes(b.Shapes); err != nil {
		return err
	}
	return errors.Join(b.checkFiles(), b.checkPlots())
}

// Judge returns an error for lost frames and missed requirements, one line for each.
func (b *Bench) Judge(r *Report) error {
	errs := []error{r.Err()}
	for _, line := range Judge(b.require, r) {
		errs = append(errs, errors.New(line))
	}
	return errors.Join(errs...)
}

// parts returns the parts to measure.
func (b *Bench) parts(images bool) (all []What) {
	for _, what := range []What{Engine, Transfers, Loop} {
		switch {
		case what == Loop && !images:
		case slices.Contains(b.What, string(what)), slices.Contains(b.What, "all"),
			len(b.What) == 0 && images == (what == Loop):
			all = append(all, what)
		}
	}
	return all
}

// drives returns the drives for a part.
func (b *Bench) drives(what What, images bool) (all []Drive) {
	if what == Engine {
		return []Drive{Closed}
	}
	for _, drive := range b.Drives {
		all = append(all, Drive(drive))
	}
	switch {
	case all == nil && b.Rate > 0:
		all = []Drive{Paced}
	case all == nil:
		all = []Drive{FlatOut}
	}
	if !images { // one request at a time
		all = slices.DeleteFunc(all, func(d Drive) bool { return d == FlatOut })
		if len(all) == 0 {
			all = []Drive{Closed}
		}
	}
	return all
}

// Run measures every contender with every batch size. If one of several contenders cannot be opened, the error is returned with the report
// of the others.
func (b *Bench) Run(ctx context.Context) (*Report, error) {
	report := &Report{Version: 1, Program: b.Program, Time: time.Now(), Machine: thisMachine(), Results: []Result{}}
	if err := b.waitIdle(ctx, &report.Load); err != nil {
		return nil, err
	}
	found := make([]*detections, len(b.Contenders))
	var failed []error
	for i, c := range b.Contenders {
		b.threads = &process.Apply(c.Runtime, "", slog.New(slog.DiscardHandler)).Capture // as in a run
		b.threads.SetCameraCount(b.Cameras)
		err := b.measure(ctx, c, report, &found[i])
		if err == nil {
			continue
		}
		if len(b.Contenders) == 1 || ctx.Err() != nil {
			return nil, err
		}
		failed = append(failed, fmt.Errorf("%s: %w", c.Engine, err))
	}
	if len(report.Results) == 0 {
		return nil, errors.Join(failed...)
	}
	if len(b.Contenders) > 1 {
		b.compareContenders(report, found)
	}
	report.Load.After, _ = busyness(ctx, glance)
	return report, errors.Join(append(failed, b.write(report))...)
}

// measure measures a contender with every batch size. A model with a fixed batch is measured with that one only.
func (b *Bench) measure(ctx context.Context, c Contender, report *Report, found **detections) error {
	for _, batch := range b.Batches {
		s, err := b.open(ctx, c, batch)
		var fixed *fixedBatchError
		if errors.As(err, &fixed) {
			b.Logger.Warn("batch not measured, the model has a fixed one", "batch", batch, "fixed", fixed.batch,
				"hint", "export it with an open batch (Ultralytics: dynamic=True)")
			if slices.Contains(b.Batches, fixed.batch) {
				continue
			}
			s, err = b.open(ctx, c, fixed.batch)
		}
		if err == nil {
			err = s.measure(ctx, report, found)
			err = errors.Join(err, s.close())
		}
		if err != nil || fixed != nil {
			return err
		}
	}
	return nil
}

// options returns the options of a contender's network.
func (b *Bench) options(c *config.Config, batch int) predict.Options {
	options := network.Options(c, pipeline.MinScore(c.Detect.Confidence), b.Logger)
	options.Build = network.PlanBuilder{Progress: b.Progress}.Build
	options.MaxBatch, options.Slots, options.Spin = batch, b.Slots, b.Spin
	options.ProbeSizes = func() []engine.Size { return []engine.Size{{Width: b.Width, Height: b.Height}} }
	if b.Level >= 0 {
		options.Level = &b.Level
	}
	return options
}
