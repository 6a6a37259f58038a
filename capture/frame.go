package capture

import (
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/clock"
)

// Object is the ground truth of one object in a rendered scene.
type Object struct {
	ID      int64 // constant while the object is in the scene
	Label   string
	Class   int
	Box     [4]float32 // x1, y1, x2, y2 of the visible part in pixels of the frame
	Visible float32    // visible share of the object, 0 to 1
}

// Frame is an image and the lease on the buffer that holds it. It is a value: copies share one lease, and the last owner calls Release on
// any of them. Data, Device and Truth must not be used after that.
type Frame struct {
	Data          []byte // Stride * Format.Rows(Height) bytes of pool memory; nil if the image is in a GPU's memory
	Device        engine.Device
	Width, Height int // pixels
	Stride        int // bytes per row
	Format        engine.PixelFormat

	// Seq numbers the frames of a camera from 0, dropped ones included.
	Seq uint64
	// Captured is when the frame arrived, in nanoseconds of CLOCK_MONOTONIC; Time is the same moment as wall-clock time. For a video that a
	// Camera plays faster or slower than recorded, Time follows the video, so that measured speeds are right.
	Captured int64
	Time     time.Time
	// CameraTime is set if Time is from the camera's clock instead of the arrival.
	CameraTime bool
	// Ready is when a Camera had the decoded pixels, in the clock of Captured; 0 without a Camera.
	Ready int64
	// Still reports that the Camera's Gate detected no motion.
	Still bool
	// Damaged reports that the image lacks data. The decoder has shown what there is: the rest of a JPEG that ends early is grey, a video may
	// show remains of older images until the next key frame.
	Damaged bool
	// Truth is the ground truth of a rendered scene, nil for other sources. It belongs to the buffer, like Data.
	Truth []Object

	Position time.Duration // position in the video; 0 for other sources
	FPS      float64       // declared rate of the video, 0 if unknown

	buffer *buffer
	lease  uint64
}

// SetTruthLen makes Truth a list of n objects in the buffer's memory, for a source to fill in.
func (f *Frame) SetTruthLen(objects int) {
	truth := f.buffer.truth
	if cap(truth) < objects {
		truth = make([]Object, objects)
	}
	f.buffer.truth, f.Truth = truth, truth[:objects]
}

// Image returns the frame as an engine's input. It belongs to the lease, like Data.
func (f *Frame) Image() engine.Image {
	return engine.Image{Data: f.Data, Width: f.Width, Height: f.Height, Stride: f.Stride, Format: f.Format, Device: f.Device}
}

// Release returns the buffer to its pool. Only the first call among all copies has an effect; later calls and calls on the zero Frame do
// nothing, even if the buffer has been lent again. It is safe for concurrent use.
func (f Frame) Release() {
	if f.buffer != nil {
		f.buffer.release(f.lease)
	}
}

// Hold keeps the pixels in host memory readable beyond Release, until EndHold. The owner of the lease calls it, so that another goroutine
// can copy the image within milliseconds. It reports false where that is not possible: in a GPU's memory, for frames without a pool, and
// where the camera could miss images because another buffer of its pool is held or none is free.
func (f Frame) Hold() bool { return f.buffer != nil && f.buffer.hold(f.lease) }

// EndHold ends a Hold that reported true; it is called once for each of them, from any goroutine. Data must not be used after that.
func (f Frame) EndHold() { f.buffer.endHold() }

// Monotonic returns CLOCK_MONOTONIC in nanoseconds, the clock of Frame.Captured and of timestamps taken in C.
func Monotonic() int64 { return clock.Monotonic() }
