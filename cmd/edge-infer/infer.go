package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
)

const inferHelp = `Runs the network on every image of the files and directories that are named and prints what it sees. Videos are images one
after the other; @LIST is a file with one path a line, @- such a list on standard input. With --batch N a request holds N images, of whichever
files; they are decoded ahead on all cores, and with --gpu 0,1 or --gpu all several GPUs share them. An image that cannot be read is told and left
out; the command fails at the end then.

  edge-infer infer street.jpg --model yolo11n.onnx --save /tmp/seen
  edge-infer infer images/ --batch 8 --save /data/seen --output seen.jsonl --resume
  edge-infer infer images/ video.mp4 --json
  edge-infer infer val2017/ --format coco --output results.json --annotations instances_val2017.json
  find /data -name '*.jpg' | edge-infer infer @- --format yolo --output labels/ --gpu all

Objects that are small on large images vanish when the image is made as small as the network's input. With --tile it looks at overlapping tiles
at their own scale too, as many at a time as --batch says; what borders cut is put together, and nothing comes out twice.

  edge-infer infer aerial/ --model yolo11n.onnx --tile 640 --overlap 0.2 --batch 8

A second network can look at each object that the first one finds: a classifier that tells the make of a car, or who wears a helmet. What it says are
attributes of the object, in the JSON and on the saved copies. Which objects it looks at, and from which score on it is believed, is set under cascade:
of a configuration file.

  edge-infer infer street/ --model yolo11n.onnx --cascade colour=colours.onnx --json

With --ensemble several networks look, and with --augment each sees images mirrored and smaller too; --fusion makes one list of what all find.
  edge-infer infer images/ --model a.onnx --ensemble b.onnx,c.onnx --weights 2,1,1 --augment flip,scale=0.83
With --input it runs any model once, whatever its inputs and outputs are: arrays that numpy.save wrote go in as they are, one for each input,
and the outputs are written as NAME.npy. TensorRT builds a plan of exactly these shapes where the model leaves more than its batch open; a plan
that edge-infer build made with --shape takes every shape of its range.

  edge-infer infer --model bert.onnx --input ids=ids.npy --input mask=mask.npy --output-dir out
An array that is larger than what the model takes goes through a --window that slides over it; seams are blended away.
  edge-infer infer --model unet3d.onnx --input scan.npy --window 64x64x64 --overlap 0.25 --output-dir out`

func newInfer(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: append(config.ImageSections(), "cascade")}
	images, tensors := &infer.Images{Progress: report.Steps(stderr)}, &infer.Tensors{Progress: report.Steps(stderr)}
	var asJSON bool
	command := &cobra.Command{
		Use:   "infer FILE|DIR|@LIST ... | infer --input NAME=TENSOR.npy ...",
		Short: "Detect on images, directories, lists and videos, or run any model on arrays",
		Args:  cobra.ArbitraryArgs,
		Long:  inferHelp,
		RunE: func(command *cobra.Command, args []string) error {
			images.Files = args
			c, err := settings.Load()
			if err != nil {
				return err
			}
			images.Config, images.Logger = c, logger(stderr, c)
			if err := infer.Check(images, tensors); err != nil {
				return err
			}
			tensors.Config, tensors.Logger = c, images.Logger
			if len(tensors.Inputs) > 0 {
				if err := c.Engine.OneDevice("infer --input"); err != nil {
					return err
				}
				tensors.Window.Counting = report.Steps(stderr)
				outputs, err := tensors.Run(command.Context())
				if err != nil {
					return err
				}
				return show(stdout, asJSON, outputs, nil)
			}
			if !terminal.Open(stdout).Live() || images.Record.Path != "" { // else the lines themselves show how far it is
				images.Counting = report.Steps(stderr)
			}
			return images.Run(command.Context(), func(seen *infer.Seen) error {
				switch {
				case asJSON:
					return json.NewEncoder(stdout).Encode(seen)
				case images.Record.Format != "":
					return nil
				}
				return seen.Print(stdout)
			})
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	settings.Flags(flags)
	settings.CascadeFlag(flags)
	images.Record.Stdout = stdout
	images.Flags(flags)
	tensors.Flags(flags)
	flags.BoolVar(&asJSON, "json", false, "print one JSON line an image, or one for the tensors")
	return command
}
