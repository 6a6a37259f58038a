package infer

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	captured "github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/draw"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// saver writes copies of images and videos with the detections drawn, under their own names.
type saver struct {
	directory string
	painter   draw.Painter
	marks     []draw.Mark
	shapes    []annotate.Shape
	names     names
	codec     func() (*annotate.Codec, error) // chosen for the first video
	video     *annotate.Video                 // being written, or nil
	written   int                             // complete copies
	last      string                          // path of the last one
}

func newSaver(directory, video string, labels []string, logger *slog.Logger) (*saver, error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, fmt.Errorf("save: %w", err)
	}
	codec := sync.OnceValues(func() (*annotate.Codec, error) {
		c, err := annotate.ChooseCodec(directory, video)
		if err == nil {
			logger.Info("saving videos", "as", c.Title)
		}
		return c, err
	})
	return &saver{directory: directory, painter: draw.Painter{Labels: labels}, names: names{}, codec: codec}, nil
}

// save draws the detections with their tracks, zones and lines, or the map, into the frame and returns the path of the copy.
func (s *saver) save(
	source string, number int, frame *capture.Frame, seen *predict.Result, tracked tracking, stats *zone.MapStats,
) (string, error) {
	if frame.Format != engine.BGR {
		return "", fmt.Errorf("save %s: %v images cannot be drawn on", source, frame.Format)
	}
	s.marks = s.marks[:0]
	for i, d := range seen.Detections {
		s.marks = append(s.marks, draw.Mark{Detection: d, Track: tracked.id(i)})
	}
	drawn := draw.Image{Data: frame.Data, Width: frame.Width, Height: frame.Height, Stride: frame.Stride}
	err := s.painter.Marks(drawn, s.marks)
	if err == nil && tracked.tracker != nil {
		s.shapes = annotate.AppendShapes(s.shapes[:0], tracked.tracker, drawn.Width, drawn.Height)
		err = annotate.Draw(&s.painter, drawn, s.shapes)
	}
	if err == nil && seen.Map != nil {
		err = s.painter.Map(drawn, seen.Map, stats.Image())
	}
	if err != nil {
		return "", fmt.Errorf("save %s: %w", source, err)
	}
	path, err := s.path(source)
	if err != nil {
		return "", err
	}
	if same(path, source) {
		return "", fmt.Errorf("save %s: the copy would replace the source, use another directory", source)
	}
	img, err := gocv.NewMatFromBytes(frame.Height, frame.Width, gocv.MatTypeCV8UC3, frame.Data)
	if err != nil {
		return "", fmt.Errorf("save %s: %w", path, err)
	}
	defer img.Close()
	if !captured.IsImage(source) {
		return path, s.frame(source, path, number, img, frame)
	}
	if err := s.finish(); err != nil {
		return "", err
	}
	encoded, err := gocv.IMEncode(gocv.FileExt(filepath.Ext(path)), img)
	if err != nil {
		return "", fmt.Errorf("save %s: %w", path, err)
	}
	defer encoded.Close()
	// The copy is renamed when complete, so that a later run knows which files are done.
	if err := atomicfile.Write(path, encoded.GetBytes(), 0o644); err != nil {
		return "", fmt.Errorf("save %s: %w", path, err)
	}
	s.written++
	s.last = path
	return path, nil
}

// frame adds a frame to the copy of its video.
func (s *saver) frame(source, path string, number int, img gocv.Mat, frame *capture.Frame) error {
	if s.video != nil && s.video.Source == source {
		return s.video.Add(img, number, frame.Position)
	}
	if err := s.finish(); err != nil {
		return err
	}
	codec, err := s.codec()
	if err != nil {
		return err
	}
	s.video = annotate.NewVideo(codec, source, path, img, frame.FPS, frame.Position)
	return nil
}

// finish completes the copy of the current video, if any.
func (s *saver) finish() error {
	if s.video == nil {
		return nil
	}
	f := s.video
	s.video = nil
	err := f.Finish()
	if err == nil {
		s.written++
		s.last = f.Path()
	}
	return err
}

// abandon discards the copy of a video that could not be read to its end.
func (s *saver) abandon(source string) error {
	if s.video == nil || source != "" && s.video.Source != source {
		return nil
	}
	f := s.video
	s.video = nil
	return f.Close()
}

// path returns the path of the copy.
func (s *saver) path(source string) (string, error) {
	extension := strings.ToLower(filepath.Ext(source))
	switch {
	case !captured.IsImage(source):
		codec, err := s.codec()
		if err != nil {
			return "", err
		}
		extension = codec.Suffix
	case !slices.Contains([]string{".jpg", ".jpeg", ".png", ".bmp"}, extension):
		extension = ".jpg"
	}
	return filepath.Join(s.directory, s.names.of(source, extension)), nil
}

// logSaved logs what was saved of a number of images.
func (s *saver) logSaved(logger *slog.Logger, images int) {
	switch {
	case s.written == 1 && captured.IsImage(s.last):
		logger.Info("saved " + s.last)
	case s.written == 1:
		logger.Info(fmt.Sprintf("saved %s, %d frames", s.last, images))
	default:
		logger.Info(fmt.Sprintf("saved %d files in %s, %d images and frames", s.written, s.directory, images))
	}
}

// has reports whether an earlier run has completed the copy.
func (s *saver) has(source string) bool {
	path, err := s.path(source)
	if err == nil {
		_, err = os.Stat(path)
	}
	return err == nil
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}
