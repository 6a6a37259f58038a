// Command acceptance runs the project's acceptance benchmarks. It alternates edge-infer with baseline programs, which do the same work
// alone in C, and with straightforward implementations, all on one machine. It prints a verdict for each target, or the reason why there is
// none.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// usage is the error that prints the synopsis.
type usage struct{}

// Error implements error.
func (usage) Error() string {
	return `usage: acceptance cpu     -program EDGE-INFER -baselines DIR [-rounds N] [-only B2,B10] [-json FILE]
       acceptance gpu     -program EDGE-INFER -baseline PROGRAM -library DIR -kernels FILE.ptx -model NET.onnx -work DIR [-only plans,B1] [-limit 9m]
       acceptance soak    -program EDGE-INFER [-duration 10m] [-cameras 4] [-size 640x480] [-fps 30] [-faults=false] [-mosquitto '']
                    [-json FILE]
       acceptance rtsp    -program EDGE-INFER -video FILE.ts -model MODEL [-engine ENGINE] [-cameras 16,50] [-parameters '#decoder=software']
                    [-duration 20s] [-json FILE]
       acceptance network OUT.onnx [SIDE [half]]

cpu must run in the root of a checkout: some targets are Go benchmarks. gpu needs neither Go nor a checkout. soak needs mosquitto, or with
-mosquitto '' starts this program's own broker ("acceptance broker").`
}

// options holds the flags of cpu and gpu.
type options struct {
	program string // edge-infer
	rounds  int
	only    string
	json    string
	limit   time.Duration
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "acceptance:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return usage{}
	}
	o := options{}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.StringVar(&o.program, "program", "", "edge-infer")
	flags.IntVar(&o.rounds, "rounds", 6, "alternating runs of program and baseline")
	flags.StringVar(&o.only, "only", "", "run only these benchmarks, separated by commas")
	flags.StringVar(&o.json, "json", "", "file for the verdicts")
	flags.DurationVar(&o.limit, "limit", time.Hour, "start no benchmark after this time")
	switch args[0] {
	case "cpu":
		c := cpu{options: &o}
		flags.StringVar(&c.baselines, "baselines", "", "directory of the baseline programs")
		flags.StringVar(&c.library, "library", os.Getenv("EDGE_INFER_ONNXRUNTIME"), "libonnxruntime.so")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return o.measure(ctx, c.parts())
	case "gpu":
		g := gpu{options: &o}
		flags.StringVar(&g.baseline, "baseline", "", "engine/tensorrt/baseline")
		flags.StringVar(&g.library, "library", "", "directory of libnvinfer")
		flags.StringVar(&g.kernels, "kernels", "", "the text of engine/preprocess/kernels.ptx.gz")
		flags.StringVar(&g.model, "model", "", "YOLOv8n-shaped network with an open batch")
		flags.StringVar(&g.work, "work", "", "directory for plans and documents")
		flags.StringVar(&g.kernelTest, "kernel-test", "", "tests of engine/preprocess/kerneltest, compiled")
		flags.StringVar(&g.plain, "plain", "", "letterbox.py")
		flags.IntVar(&g.level, "level", 3, "effort of the builder")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return o.measure(ctx, g.parts())
	case "soak":
		return runSoak(ctx, args[1:])
	case "rtsp":
		return runRTSP(ctx, args[1:])
	case "broker":
		return serveBroker(ctx)
	case "network":
		if len(args) < 2 {
			return usage{}
		}
		return writeNetwork(args[1:])
	}
	return usage{}
}

// part runs one or more benchmarks.
type part struct {
	name string // as given to -only
	run  func(ctx context.Context, s *report) error
}

// measure runs the parts and prints the report. The benchmarks of a part that fails are reported as not measured, with the reason.
func (o *options) measure(ctx context.Context, parts []part) error {
	if o.program == "" || o.rounds < 1 {
		return usage{}
	}
	program, err := filepath.Abs(o.program)
	if err != nil {
		return err
	}
	o.program = program
	s := &report{Time: time.Now(), Before: loadAverage()}
	busy := watchLoad()
	begun := time.Now()
	for _, p := range parts {
		if o.only != "" && !contains(o.only, p.name) {
			continue
		}
		if time.Since(begun) >= o.limit {
			s.skip(p.name, "no time left")
			continue
		}
		fmt.Fprintf(os.Stderr, "acceptance: %s, after %v\n", p.name, time.Since(begun).Round(time.Second))
		if err := p.run(ctx, s); err != nil {
			s.skip(p.name, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		if err := s.save(o.json); err != nil {
			return err
		}
	}
	s.Busy, s.After, s.Took = busy(), loadAverage(), time.Since(begun).Seconds()
	if err := s.save(o.json); err != nil {
		return err
	}
	return s.print(os.Stdout)
}

func contains(list, name string) bool {
	for one := range strings.SplitSeq(list, ",") {
		if one == name {
			return true
		}
	}
	return false
}
