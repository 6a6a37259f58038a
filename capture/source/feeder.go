package source

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

// feeder submits the units of a stream to a decoder that works in the background.
type feeder struct {
	reader        *capture.UnitReader
	decoder       capture.BackgroundDecoder
	skips         *skips
	replaceIfSlow bool
	skipIfSlow    bool
	// openTimeout and readTimeout bound the wait for the first and for each further image.
	openTimeout, readTimeout time.Duration
	cancel                   context.CancelFunc
	done                     chan struct{} // closed when err is set
	err                      error         // why nothing more is submitted

	submitted  atomic.Uint64 // units
	submitting atomic.Int64  // since when the decoder has no time for a unit, CLOCK_MONOTONIC; 0 if it has
	behind     atomic.Int64  // how old the newest unit was when the decoder had taken it, nanoseconds

	// Goroutine of await only:
	images    uint64
	atImage   uint64 // submitted units at the last image
	slowSince int64  // since when the decoder is behind, CLOCK_MONOTONIC; 0 if it is not
	slowAt    int64  // how far it was behind then
}

const (
	// maxUnits is the number of units without an image after which a decoder counts as broken: more than a stream may reorder.
	maxUnits = 32
	// attempts is how many decoders may do nothing within a time-out, each for minWindow at least.
	attempts  = 5
	minWindow = time.Second
	// maxBehind is how old the units may be that a decoder works on. One that may be replaced is, after slowTime, unless it catches up;
	// another skips to the newest key frame.
	maxBehind = 2 * time.Second
	slowTime  = 5 * time.Second
)

// start submits until the context or the stream ends, the decoder fails, or cancel.
func (f *feeder) start(ctx context.Context) {
	ctx, f.cancel = context.WithCancel(ctx)
	go f.run(ctx)
}

func (f *feeder) run(ctx context.Context) {
	defer close(f.done)
	var unit capture.Unit
	for f.err == nil {
		if f.skipIfSlow {
			skipIfBehind(f.reader, f.behind.Load())
		}
		unit, f.err = f.reader.Next(ctx)
		if f.err != nil {
			break
		}
		f.skips.count(f.reader)
		f.submitting.Store(capture.Monotonic())
		err := f.decoder.Submit(&unit)
		f.submitting.Store(0)
		if err != nil && !errors.Is(err, capture.ErrImage) {
			f.err = &decoderError{err}
		}
		f.submitted.Add(1)
		f.behind.Store(capture.Monotonic() - unit.Received)
	}
	_ = f.decoder.End() // fails only if the decoder has, which Next reports
}

// await waits until the decoder has an image or an error. It returns an error if the camera sends nothing for too long, and before one of
// the decoder if that does nothing: several may have to be replaced before the camera's watchdog blames the camera.
func (f *feeder) await(u capture.URI) error {
	limit := f.readTimeout
	if f.images == 0 {
		limit = f.openTimeout
	}
	window := max(limit/attempts, minWindow)
	for waited := time.Duration(0); waited < limit; waited += window {
		if f.decoder.Await(window) {
			f.images++
			f.atImage = f.submitted.Load()
			return f.checkPace()
		}
		since := f.submitting.Load()
		stuck := since != 0 && capture.Monotonic()-since > int64(window/2)
		if stuck || f.submitted.Load()-f.atImage >= maxUnits {
			return &decoderError{&capture.Error{
				Op: "decode", Kind: capture.ErrStalled, Message: "the decoder gave no image for " + window.String(),
			}}
		}
	}
	return u.NewError("read", capture.ErrStalled, "no image for "+limit.String(), "", nil)
}

// skipIfBehind makes a decoder that is slower than its camera go on with the newest key frame: without that its images would become older
// until the ring is full. behind is the age of the unit that it has taken last.
func skipIfBehind(reader *capture.UnitReader, behind int64) {
	if behind > int64(maxBehind) {
		reader.SkipToNewest()
	}
}

var errSlow = &capture.Error{Op: "decode", Kind: capture.ErrStalled, Message: "one thread is slower than the camera"}

// checkPace returns an error if a decoder that should be replaced then falls behind the camera.
func (f *feeder) checkPace() error {
	behind := f.behind.Load()
	if !f.replaceIfSlow || behind < int64(maxBehind) {
		f.slowSince = 0
		return nil
	}
	now := capture.Monotonic()
	if f.slowSince == 0 {
		f.slowSince, f.slowAt = now, behind
	}
	if now-f.slowSince < int64(slowTime) {
		return nil
	}
	f.slowSince = 0
	if behind < f.slowAt { // it began with old units and catches up
		return nil
	}
	return &decoderError{errSlow}
}

// ending returns why the stream has ended, after the decoder's last image.
func (f *feeder) ending(u capture.URI) error {
	<-f.done
	var failed *decoderError
	if errors.As(f.err, &failed) {
		return f.err
	}
	return u.NewError("read", capture.ErrUnavailable, "", "", f.err)
}
