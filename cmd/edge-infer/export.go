package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/repository"
)

func newExport(stdout, stderr io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: "export", Short: "Write a model for another server", Args: noArguments,
		Long: `Writes a model in the form that another server reads.

  edge-infer export triton --model yolo11n.onnx --repository /srv/models`,
		RunE: func(*cobra.Command, []string) error { return config.Usagef("export needs triton") },
	}
	command.AddCommand(newExportTriton(stdout, stderr))
	return command
}

func newExportTriton(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.NetworkSections()}
	e := &repository.Export{}
	var asJSON bool
	command := &cobra.Command{
		Use: "triton", Short: "Write a model into a Triton model repository", Args: noArguments,
		Long: `Writes an ONNX file or an engine plan as the next version of a model, and its configuration if there is none: batching, instances, warm-up,
labels, and the parameters that edge-infer needs to decode its outputs. An existing configuration is kept. The model is opened to read its
shapes, so a plan needs its GPU.

  edge-infer export triton --model yolo11n.onnx --repository /srv/models --instances 2
  edge-infer --camera 0 --engine triton=grpc://gpu1:8001/yolo11n`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := e.Check(); err != nil {
				return err
			}
			c, err := settings.Load()
			if err != nil {
				return err
			}
			if err := c.Engine.OneDevice("export"); err != nil {
				return err
			}
			e.Config, e.Logger = c, logger(stderr, c)
			result, err := e.Run(command.Context())
			if err != nil {
				return err
			}
			return show(stdout, asJSON, result, nil)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	e.Flags(flags)
	settings.Flags(flags)
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
