package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func newInspect(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.NetworkSections()}
	var asJSON bool
	command := &cobra.Command{
		Use: "inspect [MODEL]", Short: "Print a model's inputs, outputs, recognised layout and labels", Args: atMostOneModel,
		Long: `Opens a model and prints inputs, outputs, preprocessing, the recognised output layout with its evidence, and labels. If outputs are
ambiguous or unknown, it names the setting that is missing and ends with status 1.

  edge-infer inspect yolo11n.onnx
  edge-infer inspect model.plan --labels coco.txt --json`,
		RunE: func(command *cobra.Command, args []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			if err := c.Engine.OneDevice("inspect"); err != nil {
				return err
			}
			if len(args) > 0 {
				c.Model.Path = args[0]
			}
			options := network.Options(c, c.Detect.Confidence, slog.New(slog.DiscardHandler)) // what was refused is in the reason
			d, err := predict.Inspect(command.Context(), options)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(stdout).Encode(d)
			} else {
				_, err = stdout.Write(terminal.Lines([]byte(d.String())))
			}
			if err == nil && d.Problem != "" {
				err = fmt.Errorf("model %s: its outputs are not understood", d.Model)
			}
			return err
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	settings.Flags(flags)
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
