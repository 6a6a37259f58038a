package annotate

import (
	"errors"
	"fmt"
	"image"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/draw"
)

const (
	queue = 8 // frames that wait for the encoder; more are not written
	// liveRate is the frame rate of cameras that declare none.
	liveRate = 30
	// patience is how long a file waits for the encoder, each frame. A camera does not wait.
	patience = time.Second
)

// Recording is a sink that records a camera as a video with everything drawn that the page shows. The frame loop only leases the frames;
// copying, drawing and encoding have goroutines of their own.
type Recording struct {
	Path   string // as asked for
	Camera string
	Logger *slog.Logger

	codec  *Codec
	path   string // that does not exist yet
	free   chan *shot
	full   chan *shot // their pixels are in the leased frames
	copied chan *shot
	done   sync.WaitGroup
	missed atomic.Int64 // frames that found the queue full

	// Encoder goroutine only, and Close after it has ended.
	encoder jpegimage.Encoder
	painter draw.Painter
	drawn   gocv.Mat
	video   *Video
	written int
	err     error // that ended the recording
}

// shot is a frame for the encoder.
type shot struct {
	pixels   jpegimage.Pixels
	position time.Duration
	rate     float64
	marks    []draw.Mark
	shapes   []Shape
	labels   []string
	grid     *postprocess.DenseMap
	stats    postprocess.PixelStats
}

// Container returns the container that a file name stands for, and an error for others.
func Container(path string) (string, error) {
	switch suffix := strings.ToLower(filepath.Ext(path)); suffix {
	case ".mp4":
		return MP4, nil
	case ".avi":
		return AVI, nil
	}
	return "", fmt.Errorf("%s: must end with .mp4 or .avi", path)
}

// Open chooses the encoder and starts the goroutines. An existing file is kept: the name of the new one gets a number.
func (r *Recording) Open() error {
	container, err := Container(r.Path)
	if err != nil {
		return err
	}
	if r.codec, err = ChooseCodec(filepath.Dir(r.Path), container); err != nil {
		return fmt.Errorf("%w, or --save FILE.avi", err)
	}
	r.path = unused(r.Path)
	r.drawn = gocv.NewMat()
	r.free = make(chan *shot, queue)
	r.full = make(chan *shot, queue)
	r.copied = make(chan *shot, queue)
	for range queue {
		r.free <- new(shot)
	}
	r.done.Go(r.fetch)
	r.done.Go(r.encode)
	r.Logger.Info("recording", "camera", r.Camera, "file", r.path, "as", r.codec.Title)
	return nil
}

// unused returns the path, or the first one with a number of which there is no file.
func unused(path string) string {
	suffix := filepath.Ext(path)
	for number := 1; ; number++ {
		name := path
		if number > 1 {
			name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, suffix), number, suffix)
		}
		if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
}

// Frame implements pipeline.Sink.
func (r *Recording) Frame(in *pipeline.Result) {
	if in.Frame == nil || in.Camera != r.Camera {
		return
	}
	s := r.next(in.Lossless)
	if s == nil {
		r.missed.Add(1)
		return
	}
	if _, err := s.pixels.Lease(in, image.Rect(0, 0, in.Frame.Width, in.Frame.Height)); err != nil {
		r.missed.Add(1)
		r.free <- s
		return
	}
	s.describe(in)
	r.full <- s // as many fit as there are
}

// next returns a free shot, nil for none.
func (r *Recording) next(wait bool) *shot {
	select {
	case s := <-r.free:
		return s
	default:
	}
	if !wait {
		return nil
	}
	select {
	case s := <-r.free:
		return s
	case <-time.After(patience):
		return nil
	}
}

// describe takes over everything but the pixels.
func (s *shot) describe(in *pipeline.Result) {
	s.position, s.rate = time.Duration(in.Captured), in.Frame.FPS
	if in.Lossless && in.Frame.Position > 0 {
		s.position = in.Frame.Position // of a file, which is read faster or slower than it was recorded
	}
	s.labels = in.Labels
	s.marks = s.marks[:0]
	for i := range in.Detections {
		mark := draw.Mark{Detection: in.Detections[i].Clone()}
		if i < len(in.IDs) {
			mark.Track = in.IDs[i]
		}
		s.marks = append(s.marks, mark)
	}
	s.shapes = s.shapes[:0]
	if in.Tracker != nil {
		s.shapes = AppendShapes(s.shapes, in.Tracker, in.Frame.Width, in.Frame.Height)
	}
	s.grid = nil
	if in.Map != nil && in.MapStats != nil && in.MapStats.Image() != nil {
		s.stats = *in.MapStats.Image()
		grid := *in.Map
		grid.Classes = slices.Clone(grid.Classes)
		grid.Depths = slices.Clone(grid.Depths)
		s.grid = &grid
	}
}

// fetch copies leased frames.
func (r *Recording) fetch() {
	defer close(r.copied)
	for s := range r.full {
		s.pixels.Fetch()
		r.copied <- s
	}
}

// encode writes frames until the first error; later ones are not written.
func (r *Recording) encode() {
	for s := range r.copied {
		if r.err == nil {
			r.err = r.write(s)
			if r.err != nil {
				r.Logger.Error("recording ended", "file", r.path, "error", r.err)
			}
		}
		if r.err != nil {
			r.missed.Add(1)
		}
		r.free <- s
	}
}

func (r *Recording) write(s *shot) error {
	if err := r.encoder.Load(&s.pixels, s.pixels.Bounds()); err != nil {
		return err
	}
	if err := r.encoder.BGR(&r.drawn); err != nil {
		return err
	}
	if err := r.draw(s); err != nil {
		return err
	}
	if r.video == nil {
		rate := s.rate
		if !(rate > 0 && rate <= highestRate) {
			rate = liveRate
		}
		r.video = NewVideo(r.codec, r.Camera, r.path, r.drawn, rate, s.position)
		r.video.live = true
		r.written++
		return nil
	}
	if size := r.video.Size(); size != image.Pt(r.drawn.Cols(), r.drawn.Rows()) { // the camera has changed its resolution
		if err := gocv.Resize(r.drawn, &r.drawn, size, 0, 0, gocv.InterpolationArea); err != nil {
			return err
		}
	}
	r.written++
	return r.video.Add(r.drawn, r.written, s.position)
}

// draw draws into r.drawn.
func (r *Recording) draw(s *shot) error {
	data, err := r.drawn.DataPtrUint8()
	if err != nil {
		return err
	}
	width, height := r.drawn.Cols(), r.drawn.Rows()
	img := draw.Image{Data: data, Width: width, Height: height, Stride: 3 * width}
	r.painter.Labels = s.labels
	if err := r.painter.Marks(img, s.marks); err != nil {
		return err
	}
	if err := Draw(&r.painter, img, s.shapes); err != nil {
		return err
	}
	if s.grid == nil {
		return nil
	}
	return r.painter.Map(img, s.grid, &s.stats)
}

// Close completes the file and logs it. The frame loop must have ended.
func (r *Recording) Close() error {
	if r.full == nil {
		return nil
	}
	close(r.full)
	r.done.Wait()
	r.full = nil
	r.encoder.Close()
	err := r.err
	if r.video == nil {
		r.Logger.Warn("nothing recorded: no frame", "camera", r.Camera, "file", r.path)
	} else if err == nil {
		err = r.video.Finish()
	} else {
		err = errors.Join(fmt.Errorf("save %s: %w", r.path, err), r.video.Close())
	}
	missed := r.missed.Load()
	switch {
	case err != nil || r.video == nil:
	case missed > 0:
		r.Logger.Warn(fmt.Sprintf("saved %s, %d frames", r.path, r.written), "not_written_in_time", missed)
	default:
		r.Logger.Info(fmt.Sprintf("saved %s, %d frames", r.path, r.written))
	}
	return errors.Join(err, r.drawn.Close())
}
