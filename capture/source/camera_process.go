package source

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/gstreamer"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
)

// cameraRequest is what a camera's process is to open.
type cameraRequest struct {
	Pipeline    string        `json:"pipeline"` // of GStreamer
	EveryFrame  bool          `json:"every_frame"`
	MaxPixels   int           `json:"max_pixels"`
	OpenTimeout time.Duration `json:"open_timeout"`
}

// cameraAnswer is either that the camera is open, or why it is not or no longer.
type cameraAnswer struct {
	FPS   float64      `json:"fps,omitempty"`
	Error *cameraError `json:"error,omitempty"`
}

// cameraError is a *capture.Error without its URI.
type cameraError struct {
	Op      string `json:"op"`
	Kind    int    `json:"kind"` // index in errorKinds
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// errorKinds are the kinds of errors that a process reports.
var errorKinds = [...]error{
	capture.ErrUnavailable, capture.ErrURI, capture.ErrNotFound, capture.ErrDenied, capture.ErrFormat, capture.ErrImage, capture.ErrStalled,
	capture.ErrMemory,
}

func packError(err error) *cameraError {
	var typed *capture.Error
	if !errors.As(err, &typed) {
		return &cameraError{Op: "read", Message: err.Error()}
	}
	packed := &cameraError{Op: typed.Op, Message: typed.Message, Hint: typed.Hint}
	if typed.Err != nil {
		whole := *typed
		whole.Hint = ""
		packed.Message = whole.Reason()
	}
	for i, kind := range errorKinds {
		if errors.Is(err, kind) {
			packed.Kind = i
		}
	}
	return packed
}

func (e *cameraError) unpack() error {
	kind := capture.ErrUnavailable
	if e.Kind > 0 && e.Kind < len(errorKinds) {
		kind = errorKinds[e.Kind]
	}
	return &capture.Error{Op: e.Op, Kind: kind, Message: e.Message, Hint: e.Hint}
}

// cameraProcess is a child that reads a camera.
type cameraProcess struct {
	signals *os.File // one byte for each image that is ready
	opened  chan float64
	ended   chan struct{} // closed when err is set
	err     error         // why the process has ended
	ctx     context.Context
	cancel  context.CancelFunc
	unwatch func() bool
	buffer  [1]byte
}

const (
	// stopGrace is how long a camera's process may take to close its pipeline, whose plugin may hang.
	stopGrace = time.Second
	// pollPause is the interval at which the process of a camera whose every frame is wanted asks for a free slot.
	pollPause = time.Millisecond
)

// startCameraProcess starts a program that calls ServeCamera. It maps memory, which the caller may close.
func startCameraProcess(ctx context.Context, program []string, request cameraRequest, memory *os.File) (*cameraProcess, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// The process's own descriptor, because the caller closes its one while the process starts.
	duplicate, err := dup(memory)
	if err != nil {
		return nil, errors.Join(err, read.Close(), write.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &cameraProcess{signals: read, opened: make(chan float64, 1), ended: make(chan struct{}), ctx: ctx, cancel: cancel}
	// A read that waits ends with the context.
	p.unwatch = context.AfterFunc(ctx, func() { _ = read.SetReadDeadline(time.Unix(1, 0)) })
	process := isolate.Process{Program: program, Grace: stopGrace, Files: []*os.File{duplicate, write}}
	go func() {
		var reported error
		err := process.Run(ctx, request, nil, func(line json.RawMessage) {
			var a cameraAnswer
			switch err := json.Unmarshal(line, &a); {
			case err != nil:
				reported = err
			case a.Error != nil:
				reported = a.Error.unpack()
			default:
				select {
				case p.opened <- a.FPS:
				default:
				}
			}
		})
		p.err = processError(ctx, err, reported)
		_ = duplicate.Close()
		_ = write.Close()
		close(p.ended)
	}()
	return p, nil
}

// processError is why a camera's process has ended.
func processError(ctx context.Context, err, reported error) error {
	var death *isolate.Death
	switch {
	case reported != nil:
		return reported
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &death):
		return &capture.Error{Op: "read", Kind: capture.ErrUnavailable, Message: "the camera's process ended: it " + death.Error()}
	case err != nil:
		return &capture.Error{Op: "open", Kind: capture.ErrUnavailable, Message: "the camera's process did not start", Err: err}
	}
	return &capture.Error{Op: "read", Kind: capture.ErrUnavailable, Message: "the camera's process ended"}
}

// awaitOpen waits until the camera is open and returns its rate. The process limits the time.
func (p *cameraProcess) awaitOpen() (fps float64, err error) {
	select {
	case fps := <-p.opened:
		return fps, nil
	case <-p.ended:
		return 0, p.err
	}
}

// await waits for an image and reports whether there is one.
func (p *cameraProcess) await(limit time.Duration) (arrived bool, err error) {
	_ = p.signals.SetReadDeadline(time.Now().Add(limit))
	if p.ctx.Err() != nil {
		return false, p.ctx.Err()
	}
	_, err = p.signals.Read(p.buffer[:])
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrDeadlineExceeded) && p.ctx.Err() == nil:
		return false, nil
	}
	<-p.ended // all writers of the pipe have ended, or the context has
	return false, p.err
}

// close ends the process and waits for it, for stopGrace and a little more if it hangs.
func (p *cameraProcess) close() {
	p.unwatch()
	p.cancel()
	<-p.ended
	_ = p.signals.Close()
}

// dup returns another descriptor of an open file.
func dup(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), file.Name()), nil
}

// The descriptors of a camera's process behind those of package isolate.
const (
	memoryDescriptor = isolate.FirstFile + iota
	signalsDescriptor
)

// ServeCamera implements the hidden command of the process that reads a camera: a GStreamer pipeline whose images go into memory shared
// with the parent. It returns when the parent closes in, or after the answer that the camera has failed; its error concerns the pipes and
// the memory only.
func ServeCamera(ctx context.Context, in io.Reader, out io.Writer) error {
	memory := os.NewFile(memoryDescriptor, "camera memory")
	images, err := mapSharedImages(memory)
	if err != nil {
		return err
	}
	defer images.close()
	signals := os.NewFile(signalsDescriptor, "camera signals")
	defer signals.Close()
	var request cameraRequest
	return isolate.Serve(ctx, in, out, &request, func(ctx context.Context, _ []byte, answer func(any)) error {
		err := request.serve(ctx, images, signals, func(fps float64) { answer(cameraAnswer{FPS: fps}) })
		if err != nil && ctx.Err() == nil {
			answer(cameraAnswer{Error: packError(err)})
		}
		return nil
	})
}

// serve reads the camera until it fails or ctx ends.
func (r *cameraRequest) serve(ctx context.Context, images *sharedImages, signals io.Writer, opened func(fps float64)) (err error) {
	p, err := gstreamer.Open(ctx, r.Pipeline, gstreamer.Options{MaxPixels: r.MaxPixels})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	info, err := p.Await(r.OpenTimeout)
	if errors.Is(err, io.EOF) {
		return &capture.Error{Op: "read", Kind: capture.ErrUnavailable, Message: "it opened but returned no image"}
	}
	if err != nil {
		return err
	}
	opened(info.FPS)
	lender := &slotLender{sharedImages: images, ctx: ctx, every: r.EveryFrame}
	for {
		f, err := p.Next(lender, time.Hour) // the parent has the time limit
		switch {
		case err == nil:
			images.put(&f)
			_, err = signals.Write([]byte{1})
		case errors.Is(err, capture.ErrNoBuffer), errors.Is(err, capture.ErrImage), errors.Is(err, capture.ErrStalled):
			continue
		case errors.Is(err, io.EOF):
			return &capture.Error{Op: "read", Kind: capture.ErrUnavailable, Message: "the stream ended"}
		}
		if err != nil {
			return err
		}
	}
}

// slotLender lends slots and waits for one if every frame is wanted.
type slotLender struct {
	*sharedImages
	ctx   context.Context
	every bool
}

// Frame implements capture.Lender.
func (l *slotLender) Frame(format engine.PixelFormat, width, height int) (capture.Frame, error) {
	for {
		f, err := l.sharedImages.Frame(format, width, height)
		if !l.every || !errors.Is(err, capture.ErrNoBuffer) {
			return f, err
		}
		select {
		case <-l.ctx.Done():
			return capture.Frame{}, l.ctx.Err()
		case <-time.After(pollPause):
		}
	}
}
