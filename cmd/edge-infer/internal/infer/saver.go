package infer

import (
	"fmt"
	"image/color"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	captured "github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/draw"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Colours of zones and lines.
var zoneColour, lineColour = color.RGBA{R: 255, G: 214, A: 255}, color.RGBA{R: 255, G: 64, B: 64, A: 255}

// saver writes copies of images and videos with the detections drawn, under their own names.
type saver struct {
	directory string
	painter   draw.Painter
	marks     []draw.Mark
	points    []draw.Point
	names     names
	codec     func() (*codec, error) // chosen for the first video
	video     *video                 // being written, or nil
	written   int                    // complete copies
}

func newSaver(directory, video string, labels []string, logger *slog.Logger) (*saver, error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return nil, fmt.Errorf("save: %w", err)
	}
	return &saver{directory: directory, painter: draw.Painter{Labels: labels}, names: names{}, codec: sync.OnceValues(func() (*codec, error) {
		c, err := chooseCodec(directory, video)
		if err == nil {
			logger.Info("saving videos", "as", c.title)
		}
		return c, err
	})}, nil
}

// save draws the detections with their tracks, zones and lines, or the map, into the frame and returns the path of the copy.
func (s *saver) save(source string, number int, frame *capture.Frame, seen *predict.Result, tracked tracking, stats *zone.MapStats) (string, error) {
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
		err = s.analytics(drawn, tracked.tracker)
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
	return path, nil
}

// analytics draws zones and lines with their counts.
func (s *saver) analytics(img draw.Image, t *pipeline.Tracker) error {
	corners := func(points ...zone.Point) []draw.Point {
		s.points = s.points[:0]
		for _, p := range t.Config.Pixels(points, img.Width, img.Height) {
			s.points = append(s.points, draw.Point{X: float32(p.X), Y: float32(p.Y)})
		}
		return s.points
	}
	for i := range t.Config.Zones {
		z, count := &t.Config.Zones[i], t.ZoneCount(i)
		text := fmt.Sprintf("%s: %d, entered %d", z.Name, sum(count.Occupied), sum(count.Entered))
		if err := s.painter.Outline(img, corners(z.Points...), true, text, zoneColour); err != nil {
			return err
		}
	}
	for i := range t.Config.Lines {
		l, count := &t.Config.Lines[i], t.LineCount(i)
		text := fmt.Sprintf("%s: in %d, out %d", l.Name, sum(count.In), sum(count.Out))
		ends := corners(l.From, l.To)
		if err := s.painter.Line(img, ends[0], ends[1], text, lineColour); err != nil {
			return err
		}
	}
	return nil
}

// frame adds a frame to the copy of its video.
func (s *saver) frame(source, path string, number int, img gocv.Mat, frame *capture.Frame) error {
	if s.video != nil && s.video.source == source {
		return s.video.add(img, number, frame.Position)
	}
	if err := s.finish(); err != nil {
		return err
	}
	codec, err := s.codec()
	if err != nil {
		return err
	}
	s.video = newVideo(codec, source, path, img, frame.FPS, frame.Position)
	return nil
}

// finish completes the copy of the current video, if any.
func (s *saver) finish() error {
	if s.video == nil {
		return nil
	}
	f := s.video
	s.video = nil
	err := f.finish()
	if err == nil {
		s.written++
	}
	return err
}

// abandon discards the copy of a video that could not be read to its end.
func (s *saver) abandon(source string) error {
	if s.video == nil || source != "" && s.video.source != source {
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
		extension = codec.suffix
	case !slices.Contains([]string{".jpg", ".jpeg", ".png", ".bmp"}, extension):
		extension = ".jpg"
	}
	return filepath.Join(s.directory, s.names.of(source, extension)), nil
}

// partial returns the path of an incomplete copy. It depends on the name, because several runs may save into one directory, and is always
// the same, so that the next run replaces the rest of a killed one.
func partial(path string) string {
	return filepath.Join(filepath.Dir(path), ".partial."+filepath.Base(path))
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
