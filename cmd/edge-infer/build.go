package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/convert"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

func newBuild(stdout, stderr io.Writer) *cobra.Command {
	b := &convert.Build{Logger: logger(stderr, config.Default()), Progress: report.Steps(stderr)}
	var asJSON bool
	command := &cobra.Command{
		Use: "build [MODEL.onnx]", Short: "Build a TensorRT engine plan and check its accuracy", Args: atMostOneModel,
		Long: `Builds the plan of a model, or of the demo model, for this machine's GPU and TensorRT version, in a separate process. With --data
the accuracy gate compares it with the FP32 model on ONNX Runtime, and a plan that fails is not kept; --precision auto then tries INT8 (with
--images), FP16 and FP32 and keeps the first plan that passes. The verdict is written to PLAN` + accuracy.VerdictSuffix + `.

Without -o the plan is stored in the cache, where run --engine tensorrt finds a plan with default options; run others with --model PLAN.

  edge-infer build yolo11n.onnx --precision fp16
  edge-infer build yolo11n.onnx --images images/ --data labelled/ -o yolo11n.plan`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				b.Model = args[0]
			}
			if err := b.Check(); err != nil {
				return err
			}
			result, err := b.Run(command.Context())
			if result == nil {
				return err
			}
			return show(stdout, asJSON, result, err)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	b.Flags(flags)
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
