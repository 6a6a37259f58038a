package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

func newValidate(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.ImageSections()}
	v := &accuracy.Validate{Progress: report.Steps(stderr)}
	var asJSON bool
	command := &cobra.Command{
		Use: "validate --data DIR", Short: "Measure a model's accuracy on labelled images, and against a reference engine", Args: noArguments,
		Long: `Runs the model on labelled images and prints mean average precision as the COCO protocol defines it. --convention service measures what
the daemon reports instead: one class per box. Labels are COCO directories, an Ultralytics data.yaml, or images/ with labels/. --reference also
compares every box with a second engine, which needs no labels; the command fails if more than --max-loss (labels) or --gate (none) is lost.

  edge-infer dataset --out /tmp/parts --count 1000 --seed 99 && edge-infer validate --data /tmp/parts
  edge-infer validate --model yolo11n.onnx --data coco/ --limit 500 --plots plots
  edge-infer validate --model yolo11n.onnx --data aerial/ --tile 640
  edge-infer validate --model a.onnx --ensemble b.onnx --augment flip --data coco/
  edge-infer validate --model yolo11n.onnx --engine tensorrt --precision int8 --data coco128/data.yaml --reference onnxruntime
  edge-infer validate --model demo-int8.onnx --data /tmp/parts --reference onnxruntime --reference-model demo --gate 0.98`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := v.Check(); err != nil {
				return err
			}
			c, err := settings.Load()
			if err != nil {
				return err
			}
			if err := c.Engine.OneDevice("validate"); err != nil {
				return err
			}
			v.Config, v.Logger = c, logger(stderr, c)
			result, err := v.Run(command.Context())
			if err != nil {
				return err
			}
			return errors.Join(show(stdout, asJSON, result, nil), v.WritePlots(result), result.Refusal())
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	v.Flags(flags)
	settings.Flags(flags)
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
