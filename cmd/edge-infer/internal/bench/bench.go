// Package bench measures a network: its own time on its device, with what goes in and comes out, and in the frame loop, from the frame in
// memory to the message handed over; and where a plan's time goes.
package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench/result"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Bench measures configurations one after the other.
type Bench struct {
	What             []string // of result.What, or all; none: the loop, or what can be measured of a network that takes no images
	Drives           []string // of result.Drive; none: flat out, or paced where there is a Rate
	Batches          []int    // images in one inference, a run for each
	Duration, Warmup extent
	Cameras          int
	Rate             float64 // frames a second of each camera, of paced runs
	Slots            int     // requests in flight; 0 for the backend's own
	Spin             bool    // ONNX Runtime's threads wait in a busy loop
	Images           int     // distinct ones in memory
	Width, Height    int     // of an image in pixels
	Shapes           []string
	MQTT             string // embedded, off or a broker's address
	WaitIdle         time.Duration
	Output           string // file of the document
	Require          string
	Level            int // effort of TensorRT's builder for a missing plan, -1 for its own

	Contenders []Contender
	Program    string // what this is, for the document
	Logger     *slog.Logger
	Progress   progress.Reporter

	threads *process.ThreadScheduling // how those of cameras and of the loop run; nil for as the others
	require []result.Requirement
	shapes  map[string][]int64
}

// Contender is an engine that is measured, and its configuration.
type Contender struct {
	Engine string
	*config.Config
}

// Flags are the benchmark's place on a command line.
func (b *Bench) Flags(flags *pflag.FlagSet) {
	b.Duration, b.Warmup = extent{time: 10 * time.Second}, extent{time: 500 * time.Millisecond}
	flags.StringSliceVar(&b.What, "what", nil, "engine, transfers, loop or all, several separated by commas (default loop)")
	flags.StringSliceVar(&b.Drives, "drive", nil, "closed, flat-out or paced, or several of them (default flat-out; paced with --rate)")
	flags.IntSliceVar(&b.Batches, "batch", []int{1}, "images in one inference, one run for each")
	flags.Var(&b.Duration, "duration", "length of each run: a time, or frames like 24576x")
	flags.Var(&b.Warmup, "warmup", "before measuring: a time, or frames like 200x")
	flags.IntVar(&b.Cameras, "cameras", 1, "cameras that give images; without --rate as many as fill a batch")
	flags.Float64Var(&b.Rate, "rate", 0, "frames a second of each camera, for paced runs; 0: as fast as they are taken")
	flags.IntVar(&b.Slots, "slots", 0, "requests in flight at once when flat out; 0: what the engine has by default")
	flags.BoolVar(&b.Spin, "spin", false, "ONNX Runtime's CPU threads wait in a busy loop: faster alone, slower beside others")
	flags.IntVar(&b.Images, "images", 64, "distinct images in memory")
	flags.IntVar(&b.Width, "width", 1920, "image width in pixels")
	flags.IntVar(&b.Height, "height", 1080, "image height in pixels")
	flags.StringArrayVar(&b.Shapes, "shape", nil, "size of an input that takes no image and leaves it open: NAME=1,3,224,224")
	flags.StringVar(&b.MQTT, "mqtt", "embedded", "where the loop's messages go: embedded, off, or a broker's address")
	flags.DurationVar(&b.WaitIdle, "wait-idle", 0, "wait so long at most for a machine that has been quiet for a second")
	flags.StringVar(&b.Output, "output", "", "write the JSON document to a file as well")
	flags.StringVar(&b.Require, "require", "", "fail unless p99<=1ms,throughput>=10000,memory<=512MiB; see above")
	flags.IntVar(&b.Level, "opt-level", -1, "effort of TensorRT's builder for a plan that is missing, 0 to 5; -1: its own")
}

// Check finds what is wrong with the inputs before any work.
func (b *Bench) Check() (err error) {
	switch {
	case b.Cameras < 1 || b.Cameras > 256 || b.Images < 1 || b.Images > 1024 || b.Duration == (extent{}) || !(b.Rate >= 0):
		return config.Usagef("--cameras must be 1 to 256, --images 1 to 1024, --duration and --rate positive")
	case b.Rate != 0 && !(b.Rate >= 0.01 && b.Rate <= 1e6):
		return config.Usagef("--rate must be 0.01 to 1000000 frames a second, or 0")
	case slices.Equal(b.What, []string{string(result.Engine)}) &&
		(b.Rate > 0 || slices.ContainsFunc(b.Drives, func(drive string) bool { return result.Drive(drive) != result.Closed })):
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
		if !slices.Contains([]string{"all", string(result.Engine), string(result.Transfers), string(result.Loop)}, what) {
			return config.Usagef("--what %q: must be engine, transfers, loop or all", what)
		}
	}
	for _, drive := range b.Drives {
		switch result.Drive(drive) {
		case result.Closed, result.FlatOut:
		case result.Paced:
			if b.Rate == 0 {
				return config.Usagef("--drive paced needs --rate, the frames a second of each camera")
			}
		default:
			return config.Usagef("--drive %q: must be closed, flat-out or paced", drive)
		}
	}
	if b.Require != "" {
		if b.require, err = result.ParseRequirements(b.Require); err != nil {
			return config.Usagef("--require %v", err)
		}
	}
	if b.shapes, err = shapes(b.Shapes); err != nil {
		return err
	}
	return b.checkFiles()
}

// Judge is the error of a report that lost frames or misses what is required: one line for each.
func (b *Bench) Judge(r *result.Report) error {
	errs := []error{r.Err()}
	for _, line := range result.Judge(b.require, r) {
		errs = append(errs, errors.New(line))
	}
	return errors.Join(errs...)
}

// whats are the parts to measure, those that were asked for by name or not.
func (b *Bench) whats(images bool) (all []result.What) {
	for _, what := range []result.What{result.Engine, result.Transfers, result.Loop} {
		switch {
		case what == result.Loop && !images:
		case slices.Contains(b.What, string(what)), slices.Contains(b.What, "all"),
			len(b.What) == 0 && images == (what == result.Loop):
			all = append(all, what)
		}
	}
	return all
}

// drives are the ways of requests for a part.
func (b *Bench) drives(what result.What, images bool) (all []result.Drive) {
	if what == result.Engine {
		return []result.Drive{result.Closed}
	}
	for _, drive := range b.Drives {
		all = append(all, result.Drive(drive))
	}
	switch {
	case all == nil && b.Rate > 0:
		all = []result.Drive{result.Paced}
	case all == nil:
		all = []result.Drive{result.FlatOut}
	}
	if !images { // one at a time, whatever was asked for
		all = slices.DeleteFunc(all, func(d result.Drive) bool { return d == result.FlatOut })
		if len(all) == 0 {
			all = []result.Drive{result.Closed}
		}
	}
	return all
}

// Run measures every contender with every batch size. With several contenders one that cannot be opened is told at the end, with the report
// of the others.
func (b *Bench) Run(ctx context.Context) (*result.Report, error) {
	report := &result.Report{Version: 1, Program: b.Program, Time: time.Now(), Machine: thisMachine(), Results: []result.Result{}}
	if err := b.settle(ctx, &report.Load); err != nil {
		return nil, err
	}
	found := make([]*detections, len(b.Contenders))
	var failed []error
	for i, c := range b.Contenders {
		b.threads = &process.Apply(c.Runtime, "", slog.New(slog.DiscardHandler)).Capture // as in a run
		b.threads.SetCameraCount(b.Cameras)
		for _, batch := range b.Batches {
			s, err := b.open(ctx, c, batch)
			if err == nil {
				err = s.measure(ctx, report, &found[i])
				err = errors.Join(err, s.close())
			}
			if err == nil {
				continue
			}
			if len(b.Contenders) == 1 || ctx.Err() != nil {
				return nil, err
			}
			failed = append(failed, fmt.Errorf("%s: %w", c.Engine, err))
			break
		}
	}
	if len(report.Results) == 0 {
		return nil, errors.Join(failed...)
	}
	if len(b.Contenders) > 1 {
		b.contrast(report, found)
	}
	report.Load.After, _ = busyness(ctx, glance)
	return report, errors.Join(append(failed, b.write(report))...)
}

// options are those of a contender's network.
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
