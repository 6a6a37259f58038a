package capture

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// Source delivers frames. Next and Close are called by one goroutine; only the context that it was opened with may be cancelled from
// elsewhere.
type Source interface {
	// Next waits for the next image and decodes it into a buffer that lend gives, which is asked for after the waiting, so that a
	// source that hangs holds no buffer. The caller releases the frame. io.EOF means that the source has ended; the lender's error
	// comes back as it is, the image is then lost; any other error is an *Error. After one of kind ErrImage the source goes on,
	// after any other it must be closed.
	Next(lend Lender) (Frame, error)
	// Live reports whether images come at the source's own pace and its end is a failure, as with a camera.
	Live() bool
	// FPS is the rate that the source says it has, 0 when it does not say.
	FPS() float64
	// Close gives up the source. It is idempotent.
	Close() error
}

// Video is a Source that knows how long it should be.
type Video interface {
	Source
	// Progress is how far images have come, and where the file says that they end; 0 where it does not say.
	Progress() (reached, told time.Duration)
}

// Lender gives the buffer for a frame. A Pool is one; any other takes its frames from a Pool.
type Lender interface {
	Frame(format engine.PixelFormat, width, height int) (Frame, error)
}

// DefaultMaxPixels admits 8K UHD, which takes 100 MB as BGR. MaxPixels is what the decoder of images takes at most.
const (
	DefaultMaxPixels = 1 << 25
	MaxPixels        = 1 << 30
)

// Opener parses a camera URI and opens what it names; source.Open is one. An error is an *Error.
type Opener func(ctx context.Context, uri string, options Options) (Source, error)

// Options of an Opener; what the URI says comes first.
type Options struct {
	// OpenTimeout and ReadTimeout bound the waiting for the first and for each next image where the decoder can bound it (FFmpeg and
	// HTTP; GStreamer and V4L2 cannot). 0 means 10 s and 5 s.
	OpenTimeout, ReadTimeout time.Duration
	// EveryFrame asks for each frame in order; else a live source may leave out old ones.
	EveryFrame bool
	// MaxPixels is how many pixels, width times height, an image may have; DefaultMaxPixels when 0. A JPEG, PNG or other single image that
	// has more is refused by its header, before there is memory for it, and counts as damaged (ErrImage); a video is refused when it is
	// opened.
	MaxPixels int
}
