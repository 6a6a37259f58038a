package capture

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// Source delivers frames. One goroutine calls Next and Close; only the context passed to open may be cancelled by others.
type Source interface {
	// Next waits for the next image and decodes it into a buffer from lend. It requests the buffer after the wait, so that a source that
	// hangs holds none. The caller releases the frame. io.EOF means that the source has ended. An error of the lender is returned
	// unchanged, and the image is lost; any other error is an *Error. After ErrImage and ErrNotDecoded the source continues; after any other
	// error it must be closed.
	Next(lend Lender) (Frame, error)
	// Live reports whether images arrive at the source's own pace, as from a camera; the end of a live source is a failure.
	Live() bool
	// FPS returns the declared rate, 0 if unknown.
	FPS() float64
	// Close closes the source. It is idempotent.
	Close() error
}

// Video is a Source of known length.
type Video interface {
	Source
	// Progress returns the position of the newest image and the declared length, 0 if unknown.
	Progress() (reached, declared time.Duration)
}

// Packets is a Source that receives access units.
type Packets interface {
	Source
	// Ring returns the units received, nil if the codec is unknown, or if Options.KeepUnits is 0 and the decoder does not read units. It does
	// not change, and ends with the connection.
	Ring() *Ring
}

// Lender provides the buffer for a frame. A Pool is one; other lenders take their frames from a Pool.
type Lender interface {
	Frame(format engine.PixelFormat, width, height int) (Frame, error)
	DeviceFrame(alloc DeviceAlloc, format engine.PixelFormat, width, height int) (Frame, error)
}

// DefaultMaxPixels admits 8K UHD, which takes 100 MB as BGR. MaxPixels is the limit of the image decoder.
const (
	DefaultMaxPixels = 1 << 25
	MaxPixels        = 1 << 30
)

// Opener parses a camera URI and opens the source; source.Open is one. Its errors are of type *Error.
type Opener func(ctx context.Context, uri string, options Options) (Source, error)

// Options configures an Opener; parameters in the URI take precedence.
type Options struct {
	// OpenTimeout and ReadTimeout bound the wait for the first and for each further image where the decoder supports it (FFmpeg, GStreamer
	// and HTTP, not V4L2). 0 means 10 s and 5 s.
	OpenTimeout, ReadTimeout time.Duration
	// EveryFrame requests all frames in order; otherwise a live source may skip old ones.
	EveryFrame bool
	// Child is a program with arguments that calls source.ServeCamera, in which CSI cameras are read; empty for this process.
	Child []string
	// GPU is the number of the GPU that may decode the video, in the driver's order.
	GPU int
	// CopiedBytes counts the bytes of images that were decoded on a GPU and copied to host memory; may be nil.
	CopiedBytes *atomic.Int64
	// KeepUnits makes a source that receives access units keep those of this duration, and the GOP before, for readers of its Ring, whatever
	// decodes them. 0 keeps none for others.
	KeepUnits time.Duration
	// MaxPixels bounds the pixels of an image (width times height), DefaultMaxPixels when 0. A larger JPEG, PNG or other single image is
	// refused by its header, before memory is allocated, and counts as damaged (ErrImage). A larger video is refused when it is opened.
	MaxPixels int
}
