// Package infer implements the command infer: detections in image files and videos, and one request of any model on arrays.
package infer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/imagesize"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Images runs the network on all images and videos of files and directories.
type Images struct {
	Files   []string
	Record  Record // output file
	Save    string // directory for copies with the detections drawn in; empty for none
	Video   string // container of saved videos: annotate.Auto, annotate.MP4 or annotate.AVI
	Resume  bool   // skip files that the output and the copies already contain
	Readers int    // goroutines that decode images; 0 for one per core

	Config   *config.Config
	Logger   *slog.Logger
	Progress progress.Reporter // of building an engine plan
	Counting progress.Reporter // of the images
}

// Flags adds the flags of the job.
func (p *Images) Flags(flags *pflag.FlagSet) {
	p.Record.Flags(flags)
	flags.StringVar(&p.Save, "save", "", "directory for copies with the boxes drawn in")
	flags.StringVar(&p.Video, "video", annotate.Auto, "container of saved videos: mp4 (by GStreamer or OpenCV's FFmpeg), avi (Motion JPEG), "+
		"or auto: mp4 if an encoder is available")
	flags.BoolVar(&p.Resume, "resume", false, "continue an interrupted run with the same --output and --save")
	flags.IntVar(&p.Readers, "readers", 0, "images decoded in parallel, ahead of the network; 0: one per core")
}

// Seen is the result for one image.
type Seen struct {
	Version    int                 `json:"v"`
	File       string              `json:"file"`
	Frame      int                 `json:"frame"`
	Width      int                 `json:"width"`
	Height     int                 `json:"height"`
	Detections []payload.Exact     `json:"detections"`
	Names      map[string][]string `json:"keypoint_names,omitempty"`
	Semantic   *payload.Map        `json:"semantic,omitempty"`
	Depth      *payload.Map        `json:"depth,omitempty"`
	Saved      string              `json:"saved,omitempty"`
	Damaged    bool                `json:"damaged,omitempty"` // data at the image's end is missing, the rest is grey

	detections []postprocess.Detection
	denseMap   *postprocess.DenseMap
	labels     []string
}

// Run calls each for every image in order; the result is valid during the call only. An image that cannot be read is logged and skipped,
// and counted in the error at the end.
func (p *Images) Run(ctx context.Context, each func(*Seen) error) error {
	options := network.Options(p.Config, p.Config.Detect.Confidence, p.Logger)
	options.Decoding.TopAlways = true // a classifier returns its best classes whatever their scores
	options.Slots = 2                 // the rate counts, not the latency: images are letterboxed while the network runs on others
	options.Build = network.PlanBuilder{Progress: p.Progress}.Build
	detect := &p.Config.Detect
	w := &work{
		each: each, details: report.Details{Masks: report.MaskForm(detect.Masks), Exact: true},
		maps: report.Maps{Side: detect.MapSide, Unit: detect.DepthUnit}, logger: p.Logger, confidence: detect.Confidence,
	}
	inputs, err := w.expand(p.Files)
	if err != nil {
		return err
	}
	options.ProbeSizes = sync.OnceValue(func() []engine.Size { return imagesize.ProbeFiles(ctx, inputs, p.Config.Inference.Tile) })
	if tracked(p.Config, inputs) {
		options.Decoding.MinScore = float32(pipeline.MinScore(p.Config.Detect.Confidence))
	}
	builder := network.PredictorBuilder{Inference: p.Config.Inference}
	predictors, err := builder.OpenPerGPU(ctx, p.Config, options)
	if err != nil {
		return err
	}
	defer closeAll(predictors)
	for i := range predictors {
		if predictors[i], err = network.WithCascade(ctx, predictors[i], p.Config, p.Progress, p.Logger); err != nil {
			return err
		}
	}
	w.labels = predictors[0].Model().Metadata.Labels
	w.tracks = newTracks(p.Config, predictors[0].Model(), inputs, p.Logger)
	if p.Save != "" {
		if w.saver, err = newSaver(p.Save, p.Video, w.labels, p.Logger); err != nil {
			return err
		}
	}
	if w.recorder, err = p.Record.open(w.labels, p.Resume); err != nil {
		return err
	}
	step := p.Counting.Begin("images")
	defer step.Close()
	w.step, w.started = step, time.Now()
	files := &media.Run{Predictors: predictors, Ahead: true, Readers: p.Readers, Each: w.add}
	if p.Resume {
		files.Skip = w.skip
	}
	files.Failed = w.fail
	files.Short = func(path string, reached, declared time.Duration) {
		p.Logger.Warn("video ends early", "file", path, "at", reached.Round(time.Millisecond), "should_at", declared.Round(time.Millisecond),
			"hint", "truncated file, or longer audio: copy it again")
	}
	err = files.Files(ctx, inputs)
	w.warn(detect.MaxDetections)
	p.Logger.Debug("images processed", "images", w.done, "took", time.Since(w.started).Round(time.Millisecond),
		"network_waited", files.Waited().Round(time.Millisecond))
	if err == nil && w.done == 0 {
		err = w.alone
	}
	if err == nil && w.contrary > 0 && w.contrary+w.open == w.done { // too few for a predict.Contradiction
		err = fmt.Errorf("every image has %s: the detections are noise (the outputs are read as %s, set another --layout; edge-infer inspect "+
			"shows them)", w.contradiction, predictors[0].Model().Recognised.Layout)
	}
	err = w.finish(err)
	if err == nil {
		w.logWritten(p)
	}
	if err == nil && w.failed > 0 {
		return fmt.Errorf("%d of %d images could not be read", w.failed, w.failed+w.done)
	}
	return err
}

// warn logs what the images have in common.
func (w *work) warn(limit int) {
	if w.cut > 0 {
		w.logger.Warn("more detections than the limit, the weakest are left out", "images", w.cut, "limit", limit,
			"hint", "raise --max-detections")
	}
	if w.damaged > 0 {
		w.logger.Warn("damaged images, the end of their data is missing", "images", w.damaged, "hint", "copy them again")
	}
}

func closeAll(predictors []predict.Predictor) {
	for _, p := range predictors {
		_ = p.Close() // the work is done
	}
}

// work is the state of a run.
type work struct {
	each       func(*Seen) error
	labels     []string
	details    report.Details
	maps       report.Maps
	stats      zone.MapStats
	tracks     *tracks  // nil for none
	saver      *saver   // nil for none
	recorder   recorder // nil for none
	logger     *slog.Logger
	step       progress.Step
	confidence float64 // of a reported detection
	started    time.Time

	total, skipped int // files
	done, failed   int // images
	cut            int // images with more detections than the limit
	damaged        int // images whose end is missing
	contrary       int // images whose outputs contradict the head, all for the same reason
	open           int // images with boxes that decide nothing
	contradiction  string
	alone          error // of a single input file without any image
	lost           error // of abandoning the copy of a video
	video          bool  // there are more frames than files
}

// expand lists all files. A missing input is an error if it is the only one; otherwise it is logged and counts as an unreadable image.
func (w *work) expand(inputs []string) (files []string, err error) {
	for _, input := range inputs {
		more, err := media.Expand(input)
		switch {
		case err != nil && len(inputs) == 1:
			return nil, err
		case err != nil:
			w.fail(input, false, err)
		case media.Nested(input):
			w.logger.Warn("subdirectories are skipped", "directory", input, "hint", "name them too, or list files: find | edge-infer infer @-")
		}
		if err == nil {
			media.WarnUnread(w.logger, false, input)
		}
		files = append(files, more...)
	}
	w.total = len(files) + w.failed
	return files, nil
}

// skip implements media.Run.Skip: all outputs already contain the file.
func (w *work) skip(path string) bool {
	if w.saver != nil && !w.saver.has(path) || w.recorder != nil && !w.recorder.has(path) {
		return false
	}
	w.skipped++
	return true
}

// fail implements media.Run.Failed.
func (w *work) fail(path string, rest bool, err error) {
	w.failed++
	if w.total == 1 && w.failed == 1 && w.done == 0 {
		w.alone = err
	} else {
		w.logger.Warn("image skipped", "file", path, "error", err)
	}
	if w.saver != nil && rest {
		w.lost = errors.Join(w.lost, w.saver.abandon(path))
	}
}

// finish completes the outputs, or abandons incomplete ones after an error.
func (w *work) finish(err error) error {
	err = errors.Join(err, w.lost)
	if w.tracks != nil && err == nil {
		w.tracks.end()
	}
	if w.saver != nil && err == nil {
		err = w.saver.finish()
	} else if w.saver != nil {
		err = errors.Join(err, w.saver.abandon(""))
	}
	if w.recorder != nil {
		err = errors.Join(err, w.recorder.close(err == nil))
	}
	return err
}

// logWritten logs what was written where.
func (w *work) logWritten(p *Images) {
	if w.saver != nil {
		w.saver.logSaved(w.logger, w.done)
	}
	switch p.Record.Format {
	case YOLO, YOLOScores, MapFiles:
		w.logger.Info("results written", "files", w.done, "directory", p.Record.Path)
	default:
		if p.Record.Path != "" {
			w.logger.Info("results written", "images", w.done, "file", p.Record.Path)
		}
	}
}

func (w *work) progress(number int) {
	w.done++
	if w.video = w.video || number > 0; w.video {
		w.step.Note(fmt.Sprintf("%d images, %.1f fps", w.done, float64(w.done)/time.Since(w.started).Seconds()))
		return
	}
	w.step.Count(w.done+w.failed, w.total-w.skipped)
}

// add implements media.Run.Each.
func (w *work) add(path string, number int, frame *capture.Frame, img *predict.Result, _ engine.Timing) (err error) {
	seen := &Seen{
		Version: 1, File: path, Frame: number, Width: frame.Width, Height: frame.Height, Damaged: frame.Damaged, Detections: []payload.Exact{},
		detections: img.Detections, denseMap: img.Map, labels: w.labels,
	}
	marks := tracking{}
	if w.tracks != nil {
		if marks, err = w.tracks.add(path, number, frame, img); err != nil {
			return err
		}
		seen.detections = img.Detections
	}
	contradiction, open := predict.FindContradiction(&img.Stats)
	if contradiction != "" && (w.contradiction == "" || w.contradiction == contradiction) {
		w.contrary++
		w.contradiction = contradiction
	}
	if open {
		w.open++
	}
	if frame.Damaged {
		w.damaged++
	}
	if img.Stats.Cut > 0 && float64(img.Stats.Cut) >= w.confidence {
		w.cut++
	}
	w.details.Begin()
	for i := range img.Detections {
		d := w.details.Detection(&img.Detections[i], w.labels, frame.Width, frame.Height)
		d.Track = marks.id(i)
		seen.Detections = append(seen.Detections, payload.Exact{Detection: d})
		seen.Names = d.AddNames(seen.Names)
	}
	if img.Map != nil {
		w.stats.Measure(img.Map, frame.Width, frame.Height)
		summary := w.maps.Of(img.Map, &w.stats, w.labels, frame.Width, frame.Height)
		if img.Map.Depths != nil {
			seen.Depth = summary
		} else {
			seen.Semantic = summary
		}
	}
	if w.saver != nil {
		if seen.Saved, err = w.saver.save(path, number, frame, img, marks, &w.stats); err != nil {
			return err
		}
	}
	if w.recorder != nil {
		if err := w.recorder.add(seen); err != nil {
			return err
		}
	}
	w.progress(number)
	return w.each(seen)
}

// Print writes one line of text; control characters in file names and labels are escaped.
func (s *Seen) Print(out io.Writer) error {
	text := fmt.Appendf(nil, "%s #%d  ", s.File, s.Frame)
	switch {
	case s.Semantic != nil:
		text = report.AppendMap(text, s.Semantic)
	case s.Depth != nil:
		text = report.AppendMap(text, s.Depth)
	default:
		text = report.AppendSummary(text, s.detections, s.labels)
	}
	_, err := out.Write(append(terminal.Printable(text), '\n'))
	return err
}
