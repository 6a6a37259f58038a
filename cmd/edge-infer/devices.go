package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
)

func newDevices(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.BackendSections()}
	p := &diagnose.DeviceProbe{}
	var asJSON bool
	command := &cobra.Command{
		Use: "devices", Short: "List GPUs, libraries and cameras, and the backend that would be chosen", Args: noArguments,
		Long: `Lists GPUs and their fast precisions, the TensorRT and ONNX Runtime libraries that were found, the backend that --engine auto would choose
with the reason, Triton servers of --engine or --config, and cameras. Each library is loaded in a child process, so a crash is one line.

Precisions follow from version and compute capability. --probe also asks TensorRT's builder, which takes seconds and memory.`,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			p.Config, p.Library = c, c.Engine.Library
			found, err := p.Run(command.Context())
			if err != nil {
				return err
			}
			return show(stdout, asJSON, found, nil)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	p.Flags(command.Flags())
	settings.Flags(command.Flags())
	return command
}
