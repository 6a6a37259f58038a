package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

func newValidate(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.ImageSections()}
	v := &accuracy.Validate{Progress: report.Steps(stderr)}
	tensors := &infer.Tensors{Progress: report.Steps(stderr)}
	var asJSON bool
	command := &cobra.Command{
		Use: "validate --data DIR", Short: "Measure a model's accuracy on labelled images, and against a reference engine", Args: noArguments,
		Long: `Runs the model on labelled images and prints the mean average precision as the COCO protocol defines it: by the convention of published
figures, or with --convention service by that of the daemon, which shows one class a box. The labels are read as they come: a directory of COCO with
annotations/instances_*.json and its images beside it, a data.yaml of Ultralytics, or a directory with images/ and labels/. --plot draws precision
and recall of each class, F1 over confidence and the confusion. With --reference it also compares every box with what a second engine sees, which
needs no labels, and fails with --max-loss (labels) or --gate (none) when too much is lost. The gate counts as that of quantize and build does.

  edge-infer dataset --out /tmp/parts --count 1000 --seed 99 && edge-infer validate --data /tmp/parts
  edge-infer validate --model yolo11n.onnx --data coco/ --limit 500 --plot figures/
  edge-infer validate --model yolo11n.onnx --data aerial/ --tile 640
  edge-infer validate --model a.onnx --ensemble b.onnx --augment flip --data coco/
  edge-infer validate --model yolo11n.onnx --engine tensorrt --precision int8 --data coco128/data.yaml --reference onnxruntime
  edge-infer validate --model demo-int8.onnx --data /tmp/parts --reference onnxruntime --reference-model demo --gate 0.98 --plot int8.svg

With --input any other network is compared with the reference by its outputs: largest and mean error, and PSNR.
  edge-infer validate --model unet3d.onnx --input scan.npy --window 64x64x64 --engine tensorrt --precision fp16 --reference onnxruntime`,
		RunE: func(command *cobra.Command, _ []string) error {
			if len(tensors.Inputs) > 0 {
				return validateTensors(command, &settings, v, tensors, stdout, stderr, asJSON)
			}
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
	tensors.CompareFlags(flags)
	settings.Flags(flags)
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

// validateTensors compares the outputs of two engines on arrays.
func validateTensors(
	command *cobra.Command, settings *config.Sources, v *accuracy.Validate, tensors *infer.Tensors, stdout, stderr io.Writer, asJSON bool,
) error {
	if v.Reference == "" || v.Data != "" {
		return config.Usagef("--input compares outputs with those of --reference ENGINE, without --data")
	}
	c, err := settings.Load()
	if err != nil {
		return err
	}
	if err := infer.Check(&infer.Images{Config: c, Video: infer.VideoAuto}, tensors); err != nil {
		return err
	}
	tensors.Config, tensors.Logger, v.Config = c, logger(stderr, c), c
	reference, err := v.ReferenceConfig()
	if err != nil {
		return err
	}
	result, err := tensors.Against(command.Context(), &reference)
	if err != nil {
		return err
	}
	return show(stdout, asJSON, result, nil)
}
