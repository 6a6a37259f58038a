// Command bars measures the project's aims: the program beside floors, which do the named work alone and in C, and beside the plain way of
// doing it, in turns, on one machine. It prints a verdict for each aim, and why where there is none.
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

// usage is what to type, as an error.
type usage struct{}

// Error implements error.
func (usage) Error() string {
	return `usage: bars cpu     -program EDGE-INFER -floors DIR [-rounds N] [-only B2,B10] [-json FILE]
       bars gpu     -program EDGE-INFER -floor FLOOR -library DIR -kernels FILE.ptx -model NET.onnx -work DIR [-only plans,B1] [-limit 9m]
       bars soak    -program EDGE-INFER [-duration 10m] [-cameras 4] [-size 640x480] [-fps 30 or -rates 30,20,10] [-faults=false] [-mosquitto '']
                    [-json FILE]
       bars network OUT.onnx [SIDE [half]]
       bars limit   NET.onnx BATCH TFLOP/S TB/S

cpu runs in the root of a checkout: some of the aims are Go benchmarks. gpu wants no Go and no checkout, soak mosquitto or, with -mosquitto '',
a broker of this program, which is what "bars broker" is.`
}

// options are what both kinds of machines need.
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
		fmt.Fprintln(os.Stderr, "bars:", err)
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
	flags.IntVar(&o.rounds, "rounds", 6, "turns of program and floor")
	flags.StringVar(&o.only, "only", "", "these aims alone, separated by commas")
	flags.StringVar(&o.json, "json", "", "write the verdicts to a file")
	flags.DurationVar(&o.limit, "limit", time.Hour, "begin nothing after that long")
	switch args[0] {
	case "cpu":
		c := cpu{options: &o}
		flags.StringVar(&c.floors, "floors", "", "directory of the floor programs")
		flags.StringVar(&c.library, "library", os.Getenv("EDGE_INFER_ONNXRUNTIME"), "libonnxruntime.so")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return o.measure(ctx, c.parts())
	case "gpu":
		g := gpu{options: &o}
		flags.StringVar(&g.floor, "floor", "", "engine/tensorrt/baseline")
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
	case "broker":
		return serveBroker(ctx)
	case "limit":
		return printLimit(os.Stdout, args[1:])
	case "network":
		if len(args) < 2 {
			return usage{}
		}
		return writeNetwork(args[1:])
	}
	return usage{}
}

// part measures some aims.
type part struct {
	name string // that -only knows
	run  func(ctx context.Context, s *sheet) error
}

// measure runs the parts and prints what they came to. A part that fails leaves its aims unmeasured, with the reason.
func (o *options) measure(ctx context.Context, parts []part) error {
	if o.program == "" || o.rounds < 1 {
		return usage{}
	}
	program, err := filepath.Abs(o.program)
	if err != nil {
		return err
	}
	o.program = program
	s := &sheet{Time: time.Now(), Before: loadAverage()}
	busy := watchLoad()
	begun := time.Now()
	for _, p := range parts {
		if o.only != "" && !contains(o.only, p.name) {
			continue
		}
		if time.Since(begun) >= o.limit {
			s.skip(p.name, "no time was left")
			continue
		}
		fmt.Fprintf(os.Stderr, "bars: %s, after %v\n", p.name, time.Since(begun).Round(time.Second))
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
