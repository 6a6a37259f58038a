// Package infer is the jobs of the command of that name: what a network sees in files, and one request of any model.
package infer

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Pictures runs the network on every picture of files and directories.
type Pictures struct {
	Files []string
	Save  string // directory for copies with the findings drawn in; empty for none

	Config   *config.Config
	Logger   *slog.Logger
	Progress progress.Reporter
}

// Seen is what one picture shows.
type Seen struct {
	Version    int         `json:"v"`
	File       string      `json:"file"`
	Frame      int         `json:"frame"`
	Width      int         `json:"width"`
	Height     int         `json:"height"`
	Detections []Detection `json:"detections"`
	Saved      string      `json:"saved,omitempty"`

	findings []postprocess.Finding
	labels   []string
}

// Detection is one finding.
type Detection struct {
	Label string     `json:"label"`
	Class int        `json:"class"`
	Score float32    `json:"score"`
	Box   [4]float32 `json:"box"`
}

// Run hands what each picture shows to each, in order; it is valid during the call only.
func (p *Pictures) Run(ctx context.Context, each func(*Seen) error) error {
	options := network.Options(p.Config, p.Config.Detect.Confidence, p.Logger)
	options.Build = network.Builder{Progress: p.Progress}.Build
	n, err := predict.Open(ctx, options)
	if err != nil {
		return err
	}
	defer n.Close()
	labels := n.Model().Metadata.Labels
	var saver *saver
	if p.Save != "" {
		if saver, err = newSaver(p.Save, labels); err != nil {
			return err
		}
	}
	files := &media.Run{Predictor: n, Each: func(path string, number int, frame *capture.Frame, picture *predict.Picture, _ engine.Timing) error {
		seen := &Seen{
			Version: 1, File: path, Frame: number, Width: frame.Width, Height: frame.Height, Detections: []Detection{},
			findings: picture.Findings, labels: labels,
		}
		for _, d := range picture.Findings {
			seen.Detections = append(seen.Detections, Detection{
				postprocess.Label(labels, d.Class), d.Class, d.Score, [4]float32{d.X1, d.Y1, d.X2, d.Y2},
			})
		}
		if saver != nil {
			if seen.Saved, err = saver.save(path, number, frame, picture.Findings); err != nil {
				return err
			}
		}
		return each(seen)
	}}
	return files.Files(ctx, p.Files)
}

// Print writes one line for a person.
func (s *Seen) Print(out io.Writer) error {
	text := fmt.Appendf(nil, "%s #%d  ", s.File, s.Frame)
	_, err := out.Write(append(report.AppendSummary(text, s.findings, s.labels), '\n'))
	return err
}
