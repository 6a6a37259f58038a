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

const inferHelp = `Runs the network on images, directories, videos and lists of files (@LIST is a file with one path per line, @- reads the list from
standard input) and prints the detections. --batch N puts up to N images into a request; they are decoded ahead on all cores, and --gpu 0,1 or
--gpu all distributes requests over GPUs. An unreadable image is reported and skipped; the command then ends with status 1.

  edge-infer infer street.jpg --model yolo11n.onnx --save annotated/
  edge-infer infer images/ --model yolo11n.onnx --batch 8 --save annotated/ --output results.jsonl --resume
  edge-infer infer images/ video.mp4 --model yolo11n.onnx --json
  edge-infer infer val2017/ --model yolo11n.onnx --format coco --output results.json --annotations instances_val2017.json
  find /data -name '*.jpg' | edge-infer infer @- --model yolo11n.onnx --format yolo --output labels/ --gpu all

Objects of a video are tracked (--track=off: not). --save writes the video with boxes and track IDs, and with the zones, lines and counts of the
configuration's camera that plays the file, or of its only camera.

  edge-infer infer street.mp4 --model yolo11n.onnx --config zones.yaml --save annotated/

--tile also runs the network on overlapping tiles, for small objects on large images.

  edge-infer infer aerial/ --model yolo11n.onnx --tile 640 --overlap 0.2 --batch 8

--cascade runs a second network on each object: a classifier adds an attribute to it. cascade: of a configuration file has all options.

  edge-infer infer street/ --model yolo11n.onnx --cascade colour=colours.onnx --json

--ensemble adds models, --augment adds views of each image; --fusion merges all detections.

  edge-infer infer images/ --model a.onnx --ensemble b.onnx,c.onnx --weights 2,1,1 --augment flip,scale=0.83

--input runs any model once on arrays in NumPy's format and writes its outputs as NAME.npy. TensorRT builds a plan for exactly these shapes; a
plan of edge-infer build --shape accepts every shape of its range. --window slides over arrays that are larger than the model's input.

  edge-infer infer --model bert.onnx --input ids=ids.npy --input mask=mask.npy --output-dir out
  edge-infer infer --model unet3d.onnx --input scan.npy --window 64x64x64 --overlap 0.25 --output-dir out`

func newInfer(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: append(config.ImageSections(), "cascade")}
	images, tensors := &infer.Images{Progress: report.Steps(stderr)}, &infer.Tensors{Progress: report.Steps(stderr)}
	var asJSON bool
	command := &cobra.Command{
		Use:   "infer FILE|DIR|@LIST ... | infer --input NAME=TENSOR.npy ...",
		Short: "Detect objects in images, directories and videos, or run any model on arrays",
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
	flags.BoolVar(&asJSON, "json", false, "print one JSON line per image, or one for the tensors")
	return command
}
