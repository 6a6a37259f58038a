package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

const benchHelp = `Measures a model on this machine: rate, latency percentiles, CPU time, memory, allocations, and power and temperature where there are
sensors. --what selects:

  engine      the network alone, timed by its device
  transfers   images in memory to detections in memory: upload, letterbox, network, download, decoding
  loop        the daemon's frame loop with tracking and messages to an embedded broker (default)

--drive selects how requests arrive: closed sends the next one when the last is done, flat-out keeps the engine busy, paced delivers frames at
--rate, and latency counts from the moment each frame is due. A run that loses frames fails. Models without image input get random tensors.

  edge-infer bench --model yolo11n.onnx --what all --batch 1,4,8,16
  edge-infer bench --model yolo11n.plan --engine tensorrt --rate 30 --cameras 8 --duration 24576x --wait-idle 1m

Several engines are compared with the last one: speed-up and agreement.

  edge-infer bench --model yolo11n.onnx --engine tensorrt,onnxruntime=cuda,onnxruntime=cpu --output before.json

--compare shows two documents of --output side by side. --require fails with one line per run that misses a bound: mean, p50, p90, p95, p99,
p99.9, max, throughput, cpu, memory, gpu-memory, allocations, lost, late, watts, temperature, fairness, others, agreement and speed-up with <=, >=, <
or >; @ selects runs by batch, part, drive, engine or precision.

--plots DIR draws latency, throughput and memory by batch size, of this run or of documents side by side.

  edge-infer bench --compare before.json after.json
  edge-infer bench --plots plots before.json after.json
  edge-infer bench --batch 1,16 --require 'p99@1<=1ms,throughput@16>=10000,memory<=512MiB'

--layers times each layer of a TensorRT plan, with its precision and device. Layers timed one by one take longer than the whole network.`

func newBench(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.NetworkSections()}
	b := &bench.Bench{Progress: report.Steps(stderr), Program: thisBuild().String()}
	var layers, asJSON bool
	var before string
	engines := []string{}
	own := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	command := &cobra.Command{
		Use: "bench", Short: "Measure a network alone, with its transfers and in the frame loop", Long: benchHelp,
		Args: func(command *cobra.Command, args []string) error {
			switch {
			case before == "" && b.Plots == "":
				return noArguments(command, args)
			case before != "" && len(args) != 1:
				return config.Usagef("--compare A.json B.json takes two documents that bench --output wrote")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			if err := b.Check(); err != nil {
				return err
			}
			if before != "" {
				return compared(stdout, asJSON, b, before, args[0])
			}
			if len(args) > 0 {
				return plotted(stdout, asJSON, b, args)
			}
			if err := contend(&settings, own, b, engines); err != nil {
				return err
			}
			b.Logger = logger(stderr, b.Contenders[0].Config)
			if layers {
				profiles, err := b.Profile(command.Context())
				if err != nil {
					return err
				}
				return showBench(stdout, asJSON, map[string]any{"v": 1, "profiles": profiles}, profiles)
			}
			results, err := b.Run(command.Context())
			if results == nil {
				return err
			}
			return errors.Join(showBench(stdout, asJSON, results, results), err, b.WritePlots(bench.Document{Report: results}), b.Judge(results))
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	b.Flags(flags)
	flags.StringVar(&before, "compare", "", "compare two documents of --output: --compare A.json B.json")
	flags.BoolVar(&layers, "layers", false, "time the layers of the TensorRT plan")
	settings.Flags(own)
	flags.StringSliceVar(&engines, "engine", nil, own.Lookup("engine").Usage+"; several separated by commas are compared with the last one")
	own.VisitAll(func(flag *pflag.Flag) {
		if flags.Lookup(flag.Name) == nil { // batch and engine are lists here
			flags.AddFlag(flag)
		}
	})
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

// contend loads the settings of each engine; none is the one of the settings.
func contend(settings *config.Sources, own *pflag.FlagSet, b *bench.Bench, engines []string) error {
	if len(engines) > 1 && own.Lookup("library").Changed {
		return config.Usagef("--library belongs to one engine: with several set EDGE_INFER_TENSORRT and EDGE_INFER_ONNXRUNTIME")
	}
	for i := range max(len(engines), 1) {
		if len(engines) > 0 {
			if err := own.Set("engine", engines[i]); err != nil {
				return config.UsageError{Err: err}
			}
		}
		c, err := settings.Load()
		if err != nil {
			return err
		}
		if err := c.Engine.OneDevice("bench"); err != nil {
			return err
		}
		b.Contenders = append(b.Contenders, bench.Contender{Engine: c.Engine.Backend, Config: c})
	}
	return nil
}

// compared sets two documents side by side; what is required is required of the second.
func compared(stdout io.Writer, asJSON bool, b *bench.Bench, before, after string) error {
	both, err := benchDocuments("--compare", before, after)
	if err != nil {
		return err
	}
	c := bench.Compare(both[0].Report, both[1].Report)
	return errors.Join(showBench(stdout, asJSON, c, c), b.WritePlots(both...), b.Judge(both[1].Report))
}

// plotted draws documents beside each other; what is required is required of each.
func plotted(stdout io.Writer, asJSON bool, b *bench.Bench, paths []string) error {
	all, err := benchDocuments("--plots", paths...)
	if err != nil {
		return err
	}
	if err := b.WritePlots(all...); err != nil {
		return err
	}
	judgements := []error{showBench(stdout, asJSON, map[string]any{"v": 1, "plots": b.Plots}, plots(b.Plots))}
	for _, one := range all {
		judgements = append(judgements, b.Judge(one.Report))
	}
	return errors.Join(judgements...)
}

// plots is the directory of plots that were written.
type plots string

// Print writes where the plots are.
func (p plots) Print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "latency, throughput and memory drawn in %s\n", string(p))
	return err
}

// benchDocuments reads documents of --output.
func benchDocuments(flag string, paths ...string) (all []bench.Document, err error) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		report, err := bench.ParseReport(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", flag, path, err)
		}
		all = append(all, bench.Document{Path: path, Report: report})
	}
	return all, nil
}

func showBench(stdout io.Writer, asJSON bool, document any, text printed) error {
	if asJSON {
		return json.NewEncoder(stdout).Encode(document)
	}
	return printSafely(stdout, text)
}
