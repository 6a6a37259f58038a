// Package infer is the jobs of the command of that name: what a network sees in files, and one request of any model.
package infer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Pictures runs the network on every picture of files and directories.
type Pictures struct {
	Files  []string
	Tiles  network.Tiles
	Save   string // directory for copies with the findings drawn in; empty for none
	Resume bool   // leaves out what has its copy already

	Config   *config.Config
	Logger   *slog.Logger
	Progress progress.Reporter // of building an engine plan
	Counting progress.Reporter // of the pictures
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

	payload.Detail `json:"-"`
}

// MarshalJSON puts the details behind the other fields, as messages over MQTT have them.
func (d Detection) MarshalJSON() ([]byte, error) {
	type plain Detection
	text, err := json.Marshal(plain(d))
	if err != nil {
		return nil, err
	}
	return append(d.AppendJSON(text[:len(text)-1]), '}'), nil
}

// Run hands what each picture shows to each, in order; it is valid during the call only. A picture that cannot be read is told and left
// out, and the error says at the end how many were.
func (p *Pictures) Run(ctx context.Context, each func(*Seen) error) error {
	options := network.Options(p.Config, p.Config.Detect.Confidence, p.Logger)
	options.Build = network.Builder{Progress: p.Progress}.Build
	n, err := predict.Open(ctx, options)
	if err != nil {
		return err
	}
	defer n.Close()
	predictor, err := p.Tiles.Over(n, options.Decoding)
	if err != nil {
		return err
	}
	w := &work{each: each, details: report.Details{Masks: report.MaskForm(p.Config.Detect.Masks)}, labels: n.Model().Metadata.Labels}
	if p.Save != "" {
		if w.saver, err = newSaver(p.Save, w.labels); err != nil {
			return err
		}
	}
	w.count(p.Files)
	step := p.Counting.Begin("pictures")
	defer step.Close()
	w.step = step
	files := &media.Run{Predictor: predictor, Each: w.picture}
	if p.Resume {
		files.Skip = w.saved
	}
	if w.total > 1 {
		files.Failed = func(path string, err error) {
			w.failed++
			p.Logger.Warn("picture left out", "file", path, "error", err)
			if w.saver != nil {
				w.lost = errors.Join(w.lost, w.saver.abandon(path))
			}
		}
	}
	err = errors.Join(files.Files(ctx, p.Files), w.lost)
	if w.saver != nil && err == nil {
		err = w.saver.finish()
	} else if w.saver != nil {
		err = errors.Join(err, w.saver.abandon(""))
	}
	if err != nil {
		return err
	}
	if w.failed > 0 {
		return fmt.Errorf("%d of %d pictures could not be read", w.failed, w.failed+w.done)
	}
	return nil
}

// work is what a run has come to.
type work struct {
	each    func(*Seen) error
	labels  []string
	details report.Details
	saver   *saver // nil for none
	step    progress.Step
	started time.Time

	total        int // files
	done, failed int
	lost         error // of giving up a film's copy
	film         bool  // there are more pictures than files
}

// count finds out how many files there are, for the progress alone: what is wrong with them is found when they are read.
func (w *work) count(inputs []string) {
	w.started = time.Now()
	for _, input := range inputs {
		files, _ := media.Expand(input)
		w.total += max(len(files), 1)
	}
}

// saved implements media.Run.Skip: the copy of an earlier run is there.
func (w *work) saved(path string, number int) bool {
	_, err := os.Stat(w.saver.path(path))
	if err == nil {
		w.progress(number)
	}
	return err == nil
}

func (w *work) progress(number int) {
	w.done++
	if w.film = w.film || number > 0; w.film {
		w.step.Note(fmt.Sprintf("%d pictures, %.1f a second", w.done, float64(w.done)/time.Since(w.started).Seconds()))
		return
	}
	w.step.Count(w.done+w.failed, w.total)
}

// picture implements media.Run.Each.
func (w *work) picture(path string, number int, frame *capture.Frame, picture *predict.Picture, _ engine.Timing) (err error) {
	seen := &Seen{
		Version: 1, File: path, Frame: number, Width: frame.Width, Height: frame.Height, Detections: []Detection{},
		findings: picture.Findings, labels: w.labels,
	}
	w.details.Begin()
	for i := range picture.Findings {
		d := &picture.Findings[i]
		seen.Detections = append(seen.Detections, Detection{
			postprocess.Label(w.labels, d.Class), d.Class, d.Score,
			[4]float32{d.X1, d.Y1, d.X2, d.Y2},
			w.details.Of(d, frame.Width, frame.Height),
		})
	}
	if w.saver != nil {
		if seen.Saved, err = w.saver.save(path, number, frame, picture.Findings); err != nil {
			return err
		}
	}
	w.progress(number)
	return w.each(seen)
}

// Print writes one line for a person.
func (s *Seen) Print(out io.Writer) error {
	text := fmt.Appendf(nil, "%s #%d  ", s.File, s.Frame)
	_, err := out.Write(append(report.AppendSummary(text, s.findings, s.labels), '\n'))
	return err
}
