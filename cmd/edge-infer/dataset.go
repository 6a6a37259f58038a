package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

func newDataset(stdout, stderr io.Writer) *cobra.Command {
	options := scene.DatasetOptions{Count: 1000, Width: 1280, Height: 720}
	var out, format string
	var asJSON bool
	command := &cobra.Command{
		Use: "dataset --out DIR", Short: "Write demo images with COCO and YOLO labels", Args: noArguments,
		Long: `Renders independent scenes of the demo conveyor belt into a new directory: images, one YOLO label file per image, COCO annotations and a
data.yaml for training tools. The same seed always produces the same files.

  edge-infer dataset --out /tmp/parts --count 1000 --seed 7`,
		RunE: func(command *cobra.Command, _ []string) error {
			if out == "" {
				return config.Usagef("dataset needs --out DIR")
			}
			options.Format = scene.Format(format)
			started := time.Now()
			step := report.NewProgress(stderr, "images")
			options.Progress = step.Count
			err := scene.WriteDataset(command.Context(), out, options)
			step.Close()
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(stdout).Encode(map[string]any{
					"directory": out, "images": options.Count, "seed": options.Seed, "labels": scene.Labels(), "seconds": time.Since(started).Seconds(),
				})
			}
			_, err = fmt.Fprintf(stdout, "%d images in %s\n", options.Count, out)
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&out, "out", "", "new or empty directory")
	flags.IntVar(&options.Count, "count", options.Count, "number of images")
	flags.Uint64Var(&options.Seed, "seed", 1, "what is drawn")
	flags.IntVar(&options.Width, "width", options.Width, "image width in pixels")
	flags.IntVar(&options.Height, "height", options.Height, "image height in pixels")
	flags.IntVar(&options.PartSize, "part-size", 0, "size of the parts in pixels; 0: in proportion to the image")
	flags.StringVar(&format, "format", string(scene.JPEG), "jpg or png")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
