package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/serve"
)

func newServe(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.NetworkSections()}
	s := &serve.Serve{Release: release, Progress: report.Steps(stderr)}
	command := &cobra.Command{
		Use: "serve [MODEL]", Short: "Serve a model to clients of Triton Inference Server", Args: atMostOneModel,
		Long: `Serves a model over the Open Inference Protocol v2, as Triton Inference Server does, to NVIDIA's tritonclient, KServe's clients, curl, and
edge-infer with --engine triton=. Every address speaks HTTP and gRPC, with binary and JSON tensors, health, metadata, configuration and
statistics, but no shared memory, streams or other models. Requests that arrive while the engine is busy are combined, up to --batch images (8).

It listens on this machine only unless --listen names another address, which requires --token-file; --certificate enables https and grpcs.

  edge-infer serve yolo11n.onnx
  edge-infer serve yolo11n.onnx --listen 0.0.0.0:8001 --token-file token --certificate cert.pem --key key.pem
  edge-infer --camera 0 --engine triton=grpc://127.0.0.1:8001/yolo11n`,
		RunE: func(command *cobra.Command, args []string) error {
			if err := s.Check(); err != nil {
				return err
			}
			c, err := settings.Load()
			if err != nil {
				return err
			}
			if err := c.Engine.OneDevice("serve"); err != nil {
				return err
			}
			if len(args) > 0 {
				c.Model.Path = args[0]
			}
			s.Config, s.Logger = c, logger(stderr, c)
			s.Started = func(model, takes string, addresses []string) {
				fmt.Fprintf(stdout, "model %s at %s\ntakes %s\n", model, strings.Join(addresses, " and "), takes)
			}
			return s.Run(command.Context())
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	s.Flags(flags)
	settings.Flags(flags)
	return command
}
