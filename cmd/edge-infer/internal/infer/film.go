package infer

import (
	"errors"
	"fmt"
	"image"
	"os"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/engine/atomicfile"
)

// unknownRate is in frames a second, of films that do not tell when their frames are shown.
const unknownRate = 25

// film is a copy of a film that is being written. Under its name it stands when it is whole.
type film struct {
	codec *codec

	source, path, partial string

	first  gocv.Mat // waits for the second frame, which tells the rate
	writer *gocv.VideoWriter
}

// newFilm begins with the first frame, which the caller keeps.
func newFilm(c *codec, source, path string, frame gocv.Mat) *film {
	return &film{codec: c, source: source, path: path, partial: partial(path), first: frame.Clone()}
}

// add writes the frame with that number, which is shown at that time from the beginning.
func (f *film) add(frame gocv.Mat, number int, position time.Duration) error {
	if f.writer == nil {
		rate := float64(unknownRate)
		if position > 0 {
			rate = float64(number) / position.Seconds()
		}
		if err := f.open(rate); err != nil {
			return err
		}
	}
	if frame.Cols() != f.first.Cols() || frame.Rows() != f.first.Rows() {
		return fmt.Errorf("save %s: picture %d is %dx%d, those before were %dx%d", f.source, number, frame.Cols(), frame.Rows(), f.first.Cols(),
			f.first.Rows())
	}
	return f.write(frame)
}

// write adds a picture. Of an odd row or column an encoder of MP4 wants nothing: it takes colours by pairs of pixels.
func (f *film) write(frame gocv.Mat) error {
	if width, height := frame.Cols()&^1, frame.Rows()&^1; f.codec.even() && (width < frame.Cols() || height < frame.Rows()) {
		part := frame.Region(image.Rect(0, 0, width, height))
		defer part.Close()
		frame = part.Clone()
		defer frame.Close()
	}
	return f.writer.Write(frame)
}

func (f *film) open(rate float64) error {
	width, height := f.first.Cols(), f.first.Rows()
	if f.codec.even() {
		width, height = width&^1, height&^1
	}
	writer, err := f.codec.open(f.partial, rate, width, height)
	if err != nil {
		return fmt.Errorf("save %s: %w", f.source, err)
	}
	f.writer = writer
	return f.write(f.first)
}

// finish puts the copy in its place.
func (f *film) finish() error {
	var err error
	if f.writer == nil { // of a single frame
		err = f.open(unknownRate)
	}
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
func (f *film) Close() error {
	var err error
	if f.writer != nil {
		err = f.writer.Close()
		f.writer = nil
	}
	if removed := os.Remove(f.partial); !errors.Is(removed, os.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return errors.Join(err, f.first.Close())
}
