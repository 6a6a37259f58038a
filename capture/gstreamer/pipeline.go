package gstreamer

// #include <stdlib.h>
//
// #include "ei_gstreamer.h"
// #include "nvmm.h"
import "C"

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// Options configures Open.
type Options struct {
	// MaxPixels bounds the pixels of an image, capture.DefaultMaxPixels when 0.
	MaxPixels int
}

// Pipeline is a running GStreamer pipeline. One goroutine calls Await and Next, one Push and PushEnd, and any Close.
type Pipeline struct {
	ctx       context.Context
	maxPixels int
	unwatch   func() bool // ends the watch of ctx
	stopped   atomic.Bool

	mu     sync.RWMutex // Close holds it, all others share it
	handle *C.ei_gst_pipeline

	// Reader's goroutine only.
	image    C.ei_gst_image // held by handle if captured is set
	surface  C.ei_nvmm_image
	captured int64 // when image arrived, CLOCK_MONOTONIC; 0 if there is none
	started  bool  // an image has arrived
	seq      uint64
}

// Info describes the images of a pipeline.
type Info struct {
	Width, Height int
	FPS           float64       // declared rate, 0 if unknown
	Duration      time.Duration // 0 if unknown
}

// ErrNoSource is an error of Push.
var ErrNoSource = errors.New("the pipeline has no appsrc")

var errClosed = errors.New("the pipeline is closed")

// Open starts a pipeline, in the notation of gst-launch-1.0, with an appsink and, for Push, an appsrc. An appsink without caps accepts
// every format of package engine. Open does not wait for an image. Next ends when the context does. Errors are *Error without a URI.
func Open(ctx context.Context, description string, options Options) (*Pipeline, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := Available(); err != nil {
		return nil, err
	}
	text := C.CString(description)
	defer C.free(unsafe.Pointer(text))
	var reason C.ei_gst_error
	handle := C.ei_gst_open(text, &reason)
	if handle == nil {
		f := takeFailure(&reason)
		if f.domain == parseErrors {
			if element := broken(description); element != "" {
				return nil, missing(element)
			}
		}
		return nil, f.error("open")
	}
	p := &Pipeline{ctx: ctx, handle: handle, maxPixels: options.MaxPixels}
	if p.maxPixels <= 0 {
		p.maxPixels = capture.DefaultMaxPixels
	}
	p.unwatch = context.AfterFunc(ctx, p.stop)
	return p, nil
}

// Await waits for the first image, which the next call of Next returns, and describes it. Errors are those of Next, and of kind ErrFormat
// if the image is too large.
func (p *Pipeline) Await(limit time.Duration) (Info, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.pull(limit); err != nil {
		return Info{}, err
	}
	if _, err := p.check(); err != nil {
		var typed *capture.Error
		if errors.As(err, &typed) {
			return Info{}, &capture.Error{Op: "open", Kind: capture.ErrFormat, Message: typed.Message, Hint: typed.Hint}
		}
		return Info{}, err
	}
	return Info{
		Width: int(p.image.width), Height: int(p.image.height), FPS: p.fps(),
		Duration: time.Duration(C.ei_gst_duration(p.handle)),
	}, nil
}

// Next waits for the next image and copies it into a buffer from lend, which it requests after the wait. Size and format may change from
// image to image. It returns io.EOF at the end of the stream and the context's error after its end. An error of the lender is returned
// unchanged, and the image is lost. Other errors are *Error: ErrImage, after which the pipeline continues; ErrStalled if there was no image
// within the limit, after which Next may be called again; and the first error of the pipeline, which is final.
func (p *Pipeline) Next(lend capture.Lender, limit time.Duration) (capture.Frame, error) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if err := p.pull(limit); err != nil {
		return capture.Frame{}, err
	}
	captured, seq := p.captured, p.seq
	p.captured = 0
	p.seq++
	format, err := p.check()
	if err != nil {
		C.ei_gst_drop(p.handle)
		return capture.Frame{}, err
	}
	f, err := lend.Frame(format, int(p.image.width), int(p.image.height))
	if err != nil {
		C.ei_gst_drop(p.handle)
		return capture.Frame{}, err
	}
	to := (*C.uchar)(unsafe.Pointer(unsafe.SliceData(f.Data)))
	if C.ei_gst_copy(p.handle, to, C.size_t(len(f.Data)), C.size_t(f.Stride)) != 0 {
		f.Release()
		return capture.Frame{}, &capture.Error{Op: "read", Kind: capture.ErrImage, Message: "the image's memory does not fit its size"}
	}
	f.Seq, f.Captured = seq, captured
	f.Time = time.Now().Add(time.Duration(captured - capture.Monotonic()))
	f.Position, f.FPS = max(0, time.Duration(p.image.position)), p.fps()
	return f, nil
}

// await waits for an image, which Next returns.
func (p *Pipeline) await(limit time.Duration) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.pull(limit)
}

// pull waits until image is valid.
func (p *Pipeline) pull(limit time.Duration) error {
	if p.handle == nil {
		return p.stopError()
	}
	if p.captured != 0 {
		return nil
	}
	switch C.ei_gst_pull(p.handle, C.int64_t(max(0, limit)), &p.image) {
	case C.EI_GST_IMAGE:
		p.captured, p.started = capture.Monotonic(), true
		return nil
	case C.EI_GST_END:
		return io.EOF
	case C.EI_GST_TIMEOUT:
		which := "no image for "
		if !p.started {
			which = "no first image for "
		}
		return &capture.Error{Op: "read", Kind: capture.ErrStalled, Message: which + limit.String()}
	case C.EI_GST_STOPPED:
		return p.stopError()
	}
	return p.failure()
}

// failure returns the first error of the pipeline.
func (p *Pipeline) failure() error {
	var reason C.ei_gst_error
	C.ei_gst_failure(p.handle, &reason)
	f := takeFailure(&reason)
	return f.error("read")
}

// stopError is why a stopped pipeline gives no image.
func (p *Pipeline) stopError() error {
	if err := p.ctx.Err(); err != nil {
		return err
	}
	return &capture.Error{Op: "read", Kind: capture.ErrUnavailable, Err: errClosed}
}

// check returns the format of the image if its format and size are supported.
func (p *Pipeline) check() (engine.PixelFormat, error) {
	format, known := engine.BGR, p.image.device_memory == 0
	switch p.image.format {
	case C.EI_GST_BGR:
	case C.EI_GST_BGRX:
		format = engine.BGRx
	case C.EI_GST_NV12, C.EI_GST_I420:
		format = engine.NV12
	case C.EI_GST_YUY2:
		format = engine.YUYV
	case C.EI_GST_GRAY8:
		format = engine.GRAY8
	default:
		known = false
	}
	if !known {
		name := C.GoString(p.image.caps_name)
		if p.image.device_memory != 0 {
			name += " (memory: of a device)"
		}
		return 0, formatError("read", name)
	}
	return format, capture.CheckSize(format, int(p.image.width), int(p.image.height), p.maxPixels)
}

func (p *Pipeline) fps() float64 {
	if p.image.fps_d <= 0 {
		return 0
	}
	fps := float64(p.image.fps_n) / float64(p.image.fps_d)
	if fps <= 0 || fps > capture.MaxRate {
		return 0
	}
	return fps
}

// Push waits until the appsrc has nothing left and copies an access unit to it, so that units that a decoder has no time for stay with the
// caller. It ends with Close, the context and an error of the pipeline. Time is the unit's presentation time, negative if unknown.
func (p *Pipeline) Push(data []byte, pts time.Duration) error { return p.push(data, pts, -1) }

// push numbers the access unit, unless number is negative.
func (p *Pipeline) push(data []byte, pts time.Duration, number int64) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.handle == nil {
		return p.stopError()
	}
	if len(data) == 0 {
		return nil
	}
	from := (*C.uchar)(unsafe.Pointer(unsafe.SliceData(data)))
	return p.pushed(C.ei_gst_push(p.handle, from, C.size_t(len(data)), C.int64_t(pts), C.int64_t(number)))
}

// PushEnd ends the stream of the appsrc: Next returns the remaining images and then io.EOF.
func (p *Pipeline) PushEnd() error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.handle == nil {
		return p.stopError()
	}
	return p.pushed(C.ei_gst_push_end(p.handle))
}

func (p *Pipeline) pushed(result C.ei_gst_pushed) error {
	switch result {
	case C.EI_GST_PUSHED:
		return nil
	case C.EI_GST_NO_SOURCE:
		return ErrNoSource
	}
	var reason C.ei_gst_error
	C.ei_gst_failure(p.handle, &reason)
	f := takeFailure(&reason)
	if f.message == "" && p.stopped.Load() {
		return p.stopError()
	}
	if f.message == "" {
		f.message = "the appsrc has ended"
	}
	return f.error("push")
}

// stop makes Next and Push return at once.
func (p *Pipeline) stop() {
	p.stopped.Store(true)
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.handle != nil {
		C.ei_gst_stop(p.handle)
	}
}

// Close stops the pipeline and frees it. A Next that waits returns. Close waits for it and for the elements, some of which may hang in a
// driver. It is idempotent.
func (p *Pipeline) Close() error {
	p.unwatch()
	p.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handle != nil {
		C.ei_gst_close(p.handle)
		p.handle, p.captured = nil, 0
	}
	return nil
}
