package main

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/convert"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

func newQuantize(stdout, stderr io.Writer) *cobra.Command {
	q := &convert.Quantize{Logger: logger(stderr, config.Default()), Progress: report.Steps(stderr)}
	var file string
	var asJSON bool
	command := &cobra.Command{
		Use: "quantize [MODEL.onnx] --images DIR -o OUT.onnx", Short: "Write an INT8 or FP16 model that detects as well as the original",
		Args: atMostOneModel,
		Long: `Calibrates the model, or the demo model, on typical images and writes an ONNX file for TensorRT or ONNX Runtime (--target), with
QuantizeLinear and DequantizeLinear nodes (INT8) or float16 tensors (FP16). The accuracy gate then compares the detections of both models
on images that were not used for calibration: those of --data, with their labels if there are any, otherwise the rest of --images. A model
that fails is not written. The verdict is written to OUT.onnx` + accuracy.VerdictSuffix + `.

  edge-infer quantize yolo11n.onnx --images calibration/ --data labelled/ -o yolo11n-int8.onnx
  edge-infer quantize --images images/ --precision fp16 -o demo-fp16.onnx`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				q.Model = args[0]
			}
			if err := q.Check(); err != nil {
				return err
			}
			result, err := q.Run(command.Context())
			if result == nil {
				return err
			}
			if file != "" {
				err = errors.Join(err, result.Save(file))
			}
			return show(stdout, asJSON, result, err)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	q.Flags(flags)
	flags.StringVar(&file, "report", "", "JSON file with the result of every layer, also written if the gate refuses the model")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
