package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/postprocess"
)

func newInfer(stdout, stderr io.Writer) *cobra.Command {
	var f runFlags
	var save string
	command := &cobra.Command{
		Use: "infer FILE|DIR ...", Short: "Detect on pictures, directories and videos", Args: cobra.ArbitraryArgs,
		Long: `Runs the network on every picture of the files and directories that are named and prints what it sees. Videos are pictures one
after the other.

  edge-infer infer street.jpg --model yolo11n.onnx --save /tmp/seen
  edge-infer infer pictures/ film.mp4 --json`,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("infer needs a picture, a directory or a video")
			}
			f.cameras = args[:1] // infer has no cameras of its own; this satisfies the check that run needs
			c, err := f.configuration(command.Flags())
			if err != nil {
				return err
			}
			logger := newLogger(stderr, c.Log)
			options, err := modelOptions(c, 1, c.Detect.Confidence)
			if err != nil {
				return err
			}
			e, err := openEngine(command.Context(), c, options, logger, stderr)
			if err != nil {
				return err
			}
			defer e.Close()
			detector, err := openDetector(c, e.Model(), c.Detect.Confidence)
			if err != nil {
				return err
			}
			out := &inferReport{stdout: stdout, json: f.json, labels: e.Model().Metadata.Labels}
			if save != "" {
				if out.saver, err = newSaver(save, out.labels); err != nil {
					return err
				}
			}
			in := &inference{engine: e, detector: detector, each: out.picture}
			return in.run(command.Context(), args)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	config.Flags(config.Default(), flags)
	flags.StringVar(&f.file, "config", "", "YAML file; edge-infer config defaults prints one")
	flags.StringVar(&save, "save", "", "directory for copies with the boxes drawn in")
	flags.BoolVar(&f.json, "json", false, "print one JSON line a picture")
	return command
}

// seen is one JSON line of infer.
type seen struct {
	Version    int    `json:"v"`
	File       string `json:"file"`
	Frame      int    `json:"frame"`
	Width      int    `json:"width"`
	Height     int    `json:"height"`
	Detections []box  `json:"detections"`
	Saved      string `json:"saved,omitempty"`
}

type box struct {
	Label string     `json:"label"`
	Class int        `json:"class"`
	Score float32    `json:"score"`
	Box   [4]float32 `json:"box"`
}

// inferReport prints what infer sees, and saves copies of the pictures.
type inferReport struct {
	stdout io.Writer
	json   bool
	labels []string
	saver  *saver // nil without --save
}

func (r *inferReport) picture(path string, number int, frame *capture.Frame, detections []postprocess.Detection) error {
	line := seen{Version: 1, File: path, Frame: number, Width: frame.Width, Height: frame.Height, Detections: []box{}}
	for _, d := range detections {
		line.Detections = append(line.Detections, box{report.Label(r.labels, d.Class), d.Class, d.Score, [4]float32{d.X1, d.Y1, d.X2, d.Y2}})
	}
	if r.saver != nil {
		saved, err := r.saver.save(path, number, frame, detections)
		if err != nil {
			return err
		}
		line.Saved = saved
	}
	if r.json {
		return json.NewEncoder(r.stdout).Encode(line)
	}
	text := append([]byte(path), fmt.Sprintf(" #%d  ", number)...)
	text = report.AppendSummary(text, &pipeline.Inferred{Detections: detections, Labels: r.labels})
	_, err := r.stdout.Write(append(text, '\n'))
	return err
}
