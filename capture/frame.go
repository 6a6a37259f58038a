package capture

import (
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// Object is one thing that a drawn scene really shows.
type Object struct {
	ID      int64 // the same for as long as the object is in the scene
	Label   string
	Class   int
	Box     [4]float32 // x1, y1, x2, y2 of its visible part in pixels of the frame
	Visible float32    // share of the object that can be seen, up to 1
}

// Frame is an image and the lease on the buffer that holds it. It is a value: copies share one lease, and whoever ends up with the frame
// calls Release on one of them. Data and Truth must not be touched after that.
type Frame struct {
	Data          []byte // Stride * Format.Rows(Height) bytes of the pool's memory
	Width, Height int    // pixels
	Stride        int    // bytes from row to row
	Format        engine.PixelFormat

	// Seq numbers the frames of a camera from 0, displaced ones included.
	Seq uint64
	// Captured is when the frame arrived, in nanoseconds of CLOCK_MONOTONIC; Time is the same moment as people tell it. In a video that a
	// Camera plays at another pace than its own, Time is the video's: what moves in it keeps its speed.
	Captured int64
	Time     time.Time
	// Ready is when a Camera had its decoded pixels, in the same clock as Captured; 0 where no Camera did.
	Ready int64
	// Still says that the Camera's Gate has seen nothing move.
	Still bool
	// Truth is what a drawn scene shows, nil for every other source. It belongs to the buffer, like Data.
	Truth []Object

	Position time.Duration // in the video, from its beginning; 0 where there is none
	FPS      float64       // frames a second that the video says it has; 0 where there is none, or it does not say

	buffer *buffer
	lease  uint64
}

// SetTruthLen makes Truth a list of that many objects, in the buffer's memory, for a source to fill in.
func (f *Frame) SetTruthLen(objects int) {
	truth := f.buffer.truth
	if cap(truth) < objects {
		truth = make([]Object, objects)
	}
	f.buffer.truth, f.Truth = truth, truth[:objects]
}

// Image is the image as an engine reads it. It belongs to the lease as Data does.
func (f *Frame) Image() engine.Image {
	return engine.Image{Data: f.Data, Width: f.Width, Height: f.Height, Stride: f.Stride, Format: f.Format}
}

// Release gives the buffer back to its pool. Only the first call of all copies does so, later ones and those on the zero Frame do nothing,
// also when the buffer has been lent again meanwhile. It may be called from any goroutine.
func (f Frame) Release() {
	if f.buffer != nil {
		f.buffer.release(f.lease)
	}
}

// Monotonic reads CLOCK_MONOTONIC in nanoseconds, the clock that time stamps taken in C use.
func Monotonic() int64 { return engine.Monotonic() }
