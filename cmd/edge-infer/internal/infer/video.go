package infer

import (
	"cmp"
	"errors"
	"fmt"
	"image"
	"math"
	"os"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/engine/atomicfile"
)

// unknownRate is in frames a second, of videos that do not tell when their frames are shown.
const unknownRate = 25

// video is a copy of a video that is being written. Under its name it stands when it is whole. It has one rate; where the video's own varies,
// an image stands for as long as it did there.
type video struct {
	codec *codec

	source, path, partial string

	last    gocv.Mat      // waits for the next one, which tells how long it is shown
	begin   time.Duration // where the video has its first image
	rate    float64       // frames a second
	written int
	writer  *gocv.VideoWriter
}

// Rates of copies. What containers tell beyond the highest is a clock's tick and no rate; an image that stands for longer than the longest
// has a time stamp that is wrong.
const (
	highestRate  = 120
	longestStill = 10 // seconds
)

// newVideo begins with the first frame, of a video of that rate or 0, which is shown at that time. The caller keeps the frame.
func newVideo(c *codec, source, path string, frame gocv.Mat, rate float64, position time.Duration) *video {
	if rate > highestRate {
		rate = 0
	}
	return &video{codec: c, source: source, path: path, partial: partial(path), last: frame.Clone(), begin: position, rate: rate}
}

// add writes the frame with that number, which is shown at that time from the video's beginning.
func (f *video) add(frame gocv.Mat, number int, position time.Duration) error {
	if frame.Cols() != f.last.Cols() || frame.Rows() != f.last.Rows() {
		return fmt.Errorf("save %s: image %d is %dx%d, those before were %dx%d", f.source, number, frame.Cols(), frame.Rows(), f.last.Cols(),
			f.last.Rows())
	}
	shown := (position - f.begin).Seconds()
	if f.rate == 0 {
		if f.rate = unknownRate; shown > 0 {
			f.rate = min(1/shown, highestRate)
		}
	}
	due, most := int(math.Round(shown*f.rate))-f.written, int(math.Ceil(longestStill*f.rate))
	if due > most {
		f.begin += time.Duration(float64(due-most) / f.rate * float64(time.Second)) // what follows comes from here on
		due = most
	}
	for range max(due, 1) {
		if err := f.show(); err != nil {
			return err
		}
	}
	return frame.CopyTo(&f.last)
}

// show writes the last frame.
func (f *video) show() error {
	if f.writer == nil {
		if err := f.open(cmp.Or(f.rate, unknownRate)); err != nil {
			return err
		}
	}
	f.written++
	return f.write(f.last)
}

// write adds an image. Of an odd row or column an encoder of MP4 wants nothing: it takes colours by pairs of pixels.
func (f *video) write(frame gocv.Mat) error {
	if width, height := frame.Cols()&^1, frame.Rows()&^1; f.codec.even() && (width < frame.Cols() || height < frame.Rows()) {
		part := frame.Region(image.Rect(0, 0, width, height))
		defer part.Close()
		frame = part.Clone()
		defer frame.Close()
	}
	return f.writer.Write(frame)
}

func (f *video) open(rate float64) error {
	width, height := f.last.Cols(), f.last.Rows()
	if f.codec.even() {
		width, height = width&^1, height&^1
	}
	writer, err := f.codec.open(f.partial, rate, width, height)
	if err != nil {
		return fmt.Errorf("save %s: %w", f.source, err)
	}
	f.writer = writer
	return nil
}

// finish puts the copy in its place.
func (f *video) finish() error {
	err := f.show()
	if err == nil {
		err = f.writer.Close()
		f.writer = nil
	}
	if err == nil {
		err = atomicfile.Adopt(f.partial, f.path)
	}
	if err != nil {
		err = fmt.Errorf("save %s: %w", f.source, err)
	}
	return errors.Join(err, f.Close())
}

// Close gives up what is not finished. It is idempotent.
func (f *video) Close() error {
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
