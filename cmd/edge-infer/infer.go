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
	tensors := &tensorRun{stdout: stdout, stderr: stderr}
	command := &cobra.Command{
		Use: "infer FILE|DIR ... | infer --input NAME=TENSOR.npy ...", Short: "Detect on pictures, directories and videos, or run any model on arrays",
		Args: cobra.ArbitraryArgs,
		Long: `Runs the network on every picture of the files and directories that are named and prints what it sees. Videos are pictures one
after the other.

  edge-infer infer street.jpg --model yolo11n.onnx --save /tmp/seen
  edge-infer infer pictures/ film.mp4 --json

With --input it runs any model once, whatever its inputs and outputs are: arrays that numpy.save wrote go in as they are, one for each input,
and the outputs are written as NAME.npy. TensorRT builds a plan of exactly these shapes where the model leaves more than its batch open; a plan
that edge-infer build made with --shape takes every shape of its range.

  edge-infer infer --model bert.onnx --input ids=ids.npy --input mask=mask.npy --output-dir out`,
		RunE: func(command *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && len(tensors.inputs) == 0:
				return usagef("infer needs a picture, a directory or a video, or --input NAME=TENSOR.npy")
			case len(args) > 0 && len(tensors.inputs) > 0:
				return usagef("infer takes pictures or --input, not both")
			case tensors.directory != "" && len(tensors.inputs) == 0:
				return usagef("--output-dir is for --input")
			case save != "" && len(tensors.inputs) > 0:
				return usagef("--save is for pictures, the outputs of --input go to --output-dir")
			}
			c, err := f.settings(command.Flags())
			if err != nil {
				return err
			}
			if len(tensors.inputs) > 0 {
				tensors.json = f.json
				return tensors.run(command.Context(), c)
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
	config.InferenceFlags(config.Default(), flags)
	flags.StringVar(&f.file, "config", "", "YAML file; edge-infer config defaults prints one")
	flags.StringVar(&save, "save", "", "directory for copies with the boxes drawn in")
	flags.StringArrayVar(&tensors.inputs, "input", nil, "array for one input of the model, NAME=TENSOR.npy; NAME= may be left away when there is one")
	flags.StringVar(&tensors.directory, "output-dir", "", "directory for the outputs of --input")
	flags.BoolVar(&f.json, "json", false, "print one JSON line a picture, or one for the tensors")
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
