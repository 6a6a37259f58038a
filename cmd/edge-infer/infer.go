package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

func newInfer(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.Network()}
	pictures, tensors := &infer.Pictures{Progress: report.Steps(stderr)}, &infer.Tensors{Progress: report.Steps(stderr)}
	var asJSON bool
	command := &cobra.Command{
		Use:   "infer FILE|DIR ... | infer --input NAME=TENSOR.npy ...",
		Short: "Detect on pictures, directories and videos, or run any model on arrays",
		Args:  cobra.ArbitraryArgs,
		Long: `Runs the network on every picture of the files and directories that are named and prints what it sees. Videos are pictures one
after the other. With --batch N a request holds N pictures, of whichever files. A picture that cannot be read is told and left out; the command
fails at the end then.

  edge-infer infer street.jpg --model yolo11n.onnx --save /tmp/seen
  edge-infer infer pictures/ --batch 8 --save /data/seen --resume --json > seen.jsonl
  edge-infer infer pictures/ film.mp4 --json

Objects that are small on large pictures vanish when the picture is made as small as the network's input. With --tile it looks at overlapping tiles
at their own scale too, as many at a time as --batch says; what borders cut is put together, and nothing comes out twice.

  edge-infer infer aerial/ --model yolo11n.onnx --tile 640 --overlap 0.2 --batch 8

With --input it runs any model once, whatever its inputs and outputs are: arrays that numpy.save wrote go in as they are, one for each input,
and the outputs are written as NAME.npy. TensorRT builds a plan of exactly these shapes where the model leaves more than its batch open; a plan
that edge-infer build made with --shape takes every shape of its range.

  edge-infer infer --model bert.onnx --input ids=ids.npy --input mask=mask.npy --output-dir out`,
		RunE: func(command *cobra.Command, args []string) error {
			pictures.Files = args
			if err := infer.Check(pictures, tensors); err != nil {
				return err
			}
			c, err := settings.Load()
			if err != nil {
				return err
			}
			if err := c.Engine.OneDevice("infer"); err != nil {
				return err
			}
			pictures.Config, pictures.Logger = c, logger(stderr, c)
			tensors.Config, tensors.Logger = c, pictures.Logger
			if len(tensors.Inputs) > 0 {
				outputs, err := tensors.Run(command.Context())
				if err != nil {
					return err
				}
				return show(stdout, asJSON, outputs, nil)
			}
			if _, live := report.IsTerminal(stdout); !live { // else the lines themselves show how far it is
				pictures.Counting = report.Steps(stderr)
			}
			return pictures.Run(command.Context(), func(seen *infer.Seen) error {
				if asJSON {
					return json.NewEncoder(stdout).Encode(seen)
				}
				return seen.Print(stdout)
			})
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	settings.Flags(flags)
	pictures.Tiles.Flags(flags)
	flags.StringVar(&pictures.Save, "save", "", "directory for copies with the boxes drawn in, films as Motion JPEG")
	flags.BoolVar(&pictures.Resume, "resume", false, "go on where an earlier run with the same --save was stopped")
	flags.StringArrayVar(&tensors.Inputs, "input", nil,
		"array for one input of the model, NAME=TENSOR.npy; NAME= may be left away when there is one")
	flags.StringVar(&tensors.Directory, "output-dir", "", "directory for the outputs of --input")
	flags.BoolVar(&asJSON, "json", false, "print one JSON line a picture, or one for the tensors")
	return command
}
