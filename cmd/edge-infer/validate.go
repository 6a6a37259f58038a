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
		Long: `Runs the model on labelled images and prints the mean average precision as the COCO protocol defines it: by the convention of published
figures, or with --convention service by that of the daemon, which shows one class a box. The labels are read as they come: a directory of COCO with
annotations/instances_*.json and its images beside it, a data.yaml of Ultralytics, or a directory with images/ and labels/. --json also prints
precision and recall of each class, F1 over confidence and the confusion. With --reference it also compares every box with what a second engine sees, which
needs no labels, and fails with --max-loss (labels) or --gate (none) when too much is lost. The gate counts as that of quantize and build does.

  edge-infer dataset --out /tmp/parts --count 1000 --seed 99 && edge-infer validate --data /tmp/parts
  edge-infer validate --model yolo11n.onnx --data coco/ --limit 500
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
			return errors.Join(show(stdout, asJSON, result, nil), result.Refusal())
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	v.Flags(flags)
	settings.Flags(flags)
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
