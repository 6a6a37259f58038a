package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/probe"
)

func newDevices(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.BackendSections()}
	p := &probe.Probe{}
	var asJSON bool
	command := &cobra.Command{
		Use: "devices", Short: "Show GPUs, libraries and cameras, and which backend would be chosen and why", Args: noArguments,
		Long: `Lists the GPUs with what TensorRT computes fast on them, every TensorRT and the ONNX Runtime that can be found, which backend --engine auto
would take and why not one before it, the Triton servers of --engine or --config, and the cameras. Each library is loaded in a process of
its own, so that one that crashes is a line.

Precisions come from release and compute capability, numbers of DLA cores from TensorRT's runtime. --probe asks the builder as well, which
takes seconds and memory for its kernels.`,
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
