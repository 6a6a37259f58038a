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
		Use: "devices", Short: "Show GPUs, libraries and cameras, and which backend would be chosen and why", Args: noArguments,
		Long: `Lists the GPUs with the precisions that TensorRT supports on them, all installed TensorRT and ONNX Runtime libraries, the backend that --engine
auto chooses and why it rejects the others, the Triton servers of --engine or --config, and the cameras. Each library is loaded in its own
process, so that one that crashes is only a line of the list.

Precisions are derived from TensorRT's version and the compute capability, DLA cores are reported by TensorRT's runtime. --probe also queries
the builder, which takes seconds and memory for its kernels.`,
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
