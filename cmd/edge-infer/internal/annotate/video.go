package annotate

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	"math"
	"os"
	"path/filepath"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// UnknownRate is the frame rate of videos without timestamps.
const UnknownRate = 25

// Video is a video file being written; it is renamed when complete. It has a constant frame rate; frames of a source with a variable rate
// are repeated as needed.
type Video struct {
	Source string // for messages

	codec         *Codec
	live          bool // frames that come faster than the rate are replaced by the next one
	path, partial string

	last    gocv.Mat      // written when the time of the next frame is known
	begin   time.Duration // position of the first frame
	rate    float64       // frames per second
	written int
	writer  *gocv.VideoWriter
}

// Limits of copies. A container's rate above the highest is a clock tick, not a frame rate; a longer still image has a wrong timestamp.
const (
	highestRate  = 120
	longestStill = 10 // seconds
)

// NewVideo starts a file with the first frame at a position; rate is 0 if unknown. The frame is copied.
func NewVideo(c *Codec, source, path string, frame gocv.Mat, rate float64, position time.Duration) *Video {
	if rate > highestRate {
		rate = 0
	}
	return &Video{codec: c, Source: source, path: path, partial: partial(path), last: frame.Clone(), begin: position, rate: rate}
}

// Path returns the path of the complete file.
func (f *Video) Path() string { return f.path }

// Size returns the width and height of its frames.
func (f *Video) Size() image.Point { return image.Pt(f.last.Cols(), f.last.Rows()) }

// Add adds a frame at a position of the source.
func (f *Video) Add(frame gocv.Mat, number int, position time.Duration) error {
	if frame.Cols() != f.last.Cols() || frame.Rows() != f.last.Rows() {
		return fmt.Errorf("save %s: frame %d is %dx%d, previous frames are %dx%d", f.Source, number, frame.Cols(), frame.Rows(), f.last.Cols(),
			f.last.Rows())
	}
	shown := (position - f.begin).Seconds()
	if f.rate == 0 {
		if f.rate = UnknownRate; shown > 0 {
			f.rate = min(1/shown, highestRate)
		}
	}
	due, most := int(math.Round(shown*f.rate))-f.written, int(math.Ceil(longestStill*f.rate))
	if due > most {
		f.begin += time.Duration(float64(due-most) / f.rate * float64(time.Second)) // later frames are shifted
		due = most
	}
	if !f.live {
		due = max(due, 1)
	}
	for range due {
		if err := f.writeLast(); err != nil {
			return err
		}
	}
	return frame.CopyTo(&f.last)
}

// writeLast writes the last frame.
func (f *Video) writeLast() error {
	if f.writer == nil {
		if err := f.open(cmp.Or(f.rate, UnknownRate)); err != nil {
			return err
		}
	}
	f.written++
	return f.write(f.last)
}

// write encodes a frame. MP4 encoders need even sizes, because they subsample colours; an odd row or column is cut.
func (f *Video) write(frame gocv.Mat) error {
	if width, height := frame.Cols()&^1, frame.Rows()&^1; f.codec.even() && (width < frame.Cols() || height < frame.Rows()) {
		part := frame.Region(image.Rect(0, 0, width, height))
		defer part.Close()
		frame = part.Clone()
		defer frame.Close()
	}
	return f.writer.Write(frame)
}

func (f *Video) open(rate float64) error {
	width, height := f.last.Cols(), f.last.Rows()
	if f.codec.even() {
		width, height = width&^1, height&^1
	}
	writer, err := f.codec.open(f.partial, rate, width, height)
	if err != nil {
		return fmt.Errorf("save %s: %w", f.Source, err)
	}
	f.writer = writer
	return nil
}

// Finish completes and renames the copy.
func (f *Video) Finish() error {
	err := f.writeLast()
	if err == nil {
		err = f.writer.Close()
		f.writer = nil
	}
	if err == nil {
		err = checkWhole(f.partial)
	}
	if err == nil {
		err = atomicfile.Adopt(f.partial, f.path)
	}
	if err != nil {
		err = fmt.Errorf("save %s as %s: %w", f.Source, f.path, err)
	}
	return errors.Join(err, f.Close())
}

// Close discards an incomplete copy. It is idempotent.
func (f *Video) Close() error {
	var err error
	if f.writer != nil {
		err = f.writer.Close()
		f.writer = nil
	}
	if removed := os.Remove(f.partial); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return errors.Join(err, f.last.Close())
}

// partial returns the path of an incomplete file. It depends on the name, because several runs may save into one directory, and is always
// the same, so that the next run replaces the rest of a killed one.
func partial(path string) string {
	return filepath.Join(filepath.Dir(path), ".partial."+filepath.Base(path))
}
