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
		Use: "serve [MODEL]", Short: "Answer clients of Triton Inference Server with this machine's engine", Args: atMostOneModel,
		Long: `Runs a model for clients on this machine or others, which speak the Open Inference Protocol v2 as Triton Inference Server does: NVIDIA's
tritonclient, KServe's, curl, and edge-infer itself with --engine triton=. Every address answers HTTP and gRPC, tensors in binary or as JSON;
health, metadata, configuration and statistics are there; shared memory, streams and other models are not. Requests that come while the engine
is at work are run together, up to --batch images (8 where it is not given).

Only this machine is answered unless --listen says otherwise, which needs --token-file; --certificate makes it https and grpcs.

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
