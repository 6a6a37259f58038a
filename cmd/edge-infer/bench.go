package main

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

func newBench(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.Network()}
	b := &bench.Bench{Progress: report.Steps(stderr)}
	var layers, asJSON bool
	command := &cobra.Command{
		Use: "bench", Short: "Measure the frame loop from frame in memory to message handed over", Args: noArguments,
		Long: `Runs the frame loop flat out on pictures of the demo belt that lie in memory, with tracking and with messages to an embedded broker, and
prints rate, latency and CPU time a frame. A batch of 4 is 4 pictures in every request: there are that many cameras at least. With --rate the
cameras give frames at that rate instead, as real ones do, and a request holds what has come by then. Frames that are lost make it fail.

With --layers it does not run the loop but says where one request's time goes on TensorRT: each layer's mean time, its precision and whether
it runs on the GPU or a DLA, and how many layers run in which precision. Layers one by one take longer than the network as a whole.

  edge-infer bench --cameras 4 --batches 1,4 --duration 10s
  edge-infer bench --model yolo11n.onnx --engine tensorrt --rate 30 --cameras 8 --json
  edge-infer bench --model yolo11n.plan --layers`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := b.Check(); err != nil {
				return err
			}
			c, err := settings.Load()
			if err != nil {
				return err
			}
			if err := c.Engine.OneDevice("bench"); err != nil {
				return err
			}
			b.Config, b.Logger = c, logger(stderr, c)
			if layers {
				profiles, err := b.Profile(command.Context())
				if err != nil {
					return err
				}
				return showBench(stdout, asJSON, "profiles", profiles)
			}
			results, err := b.Run(command.Context())
			if err != nil {
				return err
			}
			return errors.Join(showBench(stdout, asJSON, "results", results), results.Err())
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	b.Flags(flags)
	flags.BoolVar(&layers, "layers", false, "time the layers of TensorRT's plan instead of the loop")
	settings.Flags(flags)
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

func showBench(stdout io.Writer, asJSON bool, name string, result printed) error {
	if asJSON {
		return json.NewEncoder(stdout).Encode(map[string]any{"v": 1, name: result})
	}
	return result.Print(stdout)
}
