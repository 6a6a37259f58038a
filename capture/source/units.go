package source

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

// units decodes the access units of a stream.
type units struct {
	ctx     context.Context
	uri     capture.URI
	reader  *capture.UnitReader
	decoder capture.Decoder
	feeder  *feeder // nil if the decoder works in the foreground

	skipIfSlow bool
	behind     int64 // how old the newest unit was when the decoder had taken it, nanoseconds; the feeder has its own

	unit  capture.Unit // memory of Next
	last  time.Time    // of the newest frame
	lost  uint64       // images to be reported
	skips skips
}

// skips counts units that were never submitted because the decoder was too slow. Those before the first key frame do not count. One
// goroutine calls count, another may read total.
type skips struct {
	begun bool
	last  uint64 // of the reader
	total atomic.Uint64
}

// count is called after each unit.
func (s *skips) count(reader *capture.UnitReader) {
	now := reader.Skipped()
	if s.begun {
		s.total.Add(now - s.last)
	}
	s.begun, s.last = true, now
}

// maxClockError is how far a camera's clock may be from this machine's; otherwise the time of arrival is used. It includes the time that
// the camera takes to encode and send.
const maxClockError = 5 * time.Second

// decoderError reports that a decoder cannot go on; another may.
type decoderError struct{ error }

func (e *decoderError) Unwrap() error { return e.error }

// newUnits decodes with a decoder, which it closes. With replaceIfSlow a decoder that falls behind the camera fails, otherwise it skips
// images.
func newUnits(s *stream, decoder capture.Decoder, replaceIfSlow bool) *units {
	live := !s.options.EveryFrame
	u := &units{ctx: s.ctx, uri: s.uri, reader: s.camera.Units(), decoder: decoder, skipIfSlow: live}
	if background, ok := decoder.(capture.BackgroundDecoder); ok {
		u.feeder = &feeder{
			reader: u.reader, decoder: background, skips: &u.skips, done: make(chan struct{}),
			openTimeout: s.options.OpenTimeout, readTimeout: s.options.ReadTimeout,
			replaceIfSlow: live && replaceIfSlow, skipIfSlow: live && !replaceIfSlow,
		}
		u.feeder.start(s.ctx)
	}
	return u
}

// Live implements capture.Source.
func (u *units) Live() bool { return true }

// FPS implements capture.Source. The stream does not declare it.
func (u *units) FPS() float64 { return 0 }

// Next implements capture.Source.
func (u *units) Next(lend capture.Lender) (capture.Frame, error) {
	for {
		if err := u.countLost(); err != nil {
			return capture.Frame{}, err
		}
		f, found, err := u.decoder.Next(lend)
		switch {
		case errors.Is(err, io.EOF):
			return f, u.explain(u.feeder.ending(u.uri))
		case err != nil:
			return f, u.explain(err)
		case found:
			u.setTime(&f)
			return f, nil
		case u.feeder != nil:
			err = u.feeder.await(u.uri)
		default:
			err = u.submit()
		}
		if err != nil {
			return capture.Frame{}, err
		}
	}
}

// submit decodes the next unit in the foreground.
func (u *units) submit() (err error) {
	if u.skipIfSlow {
		skipIfBehind(u.reader, u.behind)
	}
	u.unit, err = u.reader.Next(u.ctx)
	if err != nil {
		return u.uri.NewError("read", capture.ErrUnavailable, "", "", err)
	}
	u.skips.count(u.reader)
	err = u.decoder.Submit(&u.unit)
	u.behind = capture.Monotonic() - u.unit.Received
	if err != nil {
		return u.explain(err)
	}
	return nil
}

// countLost returns an error for each image that the decoder has lost or had no time for.
func (u *units) countLost() error {
	u.lost += u.decoder.Lost() + u.skips.total.Swap(0)
	if u.lost == 0 {
		return nil
	}
	u.lost--
	return u.uri.NewError("read", capture.ErrImage, "no image: its data is damaged, incomplete or too late", "", nil)
}

// setTime replaces the time of a frame whose camera has no clock or a wrong one. Frames' times never go backwards, also not when the
// camera's clock becomes known, some images after the first.
func (u *units) setTime(f *capture.Frame) {
	arrived := time.Now().Add(time.Duration(f.Captured - capture.Monotonic()))
	if !f.CameraTime || f.Time.Sub(arrived).Abs() > maxClockError {
		f.Time, f.CameraTime = arrived, false
	}
	if f.Time.Before(u.last) {
		f.Time = u.last
	}
	u.last = f.Time
}

// explain adds the address to an error of the decoder. Errors of the lender stay as they are.
func (u *units) explain(err error) error {
	var typed *capture.Error
	switch {
	case u.ctx.Err() != nil:
		return u.ctx.Err()
	case !errors.As(err, &typed), typed.URI != "":
		return err
	case errors.Is(err, capture.ErrImage):
		return withURI(u.uri, err)
	}
	return &decoderError{err}
}

// Close implements capture.Source. It waits for the decoder, which may hang in a driver.
func (u *units) Close() error {
	if u.feeder != nil {
		u.feeder.cancel()
	}
	err := u.decoder.Close()
	if u.feeder != nil {
		<-u.feeder.done
	}
	return err
}
