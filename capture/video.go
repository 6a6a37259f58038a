package capture

import (
	"errors"
	"io"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/engine"
)

// backend is who reads and decodes a stream for OpenCV.
type backend string

const (
	ffmpeg    backend = "ffmpeg"
	gstreamer backend = "gstreamer"
)

// OpenCV's numbers for its time-outs, which gocv does not name. Only the FFmpeg backend knows them; the others refuse to open.
const (
	propertyOpenTimeout = 53 // ms
	propertyReadTimeout = 54 // ms
)

// video is a cv::VideoCapture: a file, a stream, a device or a pipeline.
type video struct {
	uri      URI
	live     bool
	fps      float64
	patience time.Duration // of the backend, with a picture that does not come
	late     int64         // when it had last waited for about that long, CLOCK_MONOTONIC
	capture  *gocv.VideoCapture
	decoder  decoder
	raw      *gocv.Mat // the encoded picture of a device that compresses; nil for any other
	encoded  picture   // a copy of that
	seq      uint64
}

// openVideo opens address with one of OpenCV's backends, as a live source of BGR pictures.
func openVideo(u URI, address string, api gocv.VideoCaptureAPI, options Options) (*video, error) {
	if !gocv.VideoRegistry.HasBackend(api) {
		return nil, u.fail("open", ErrUnavailable, "this OpenCV is built without "+gocv.VideoRegistry.GetBackendName(api), "", nil)
	}
	var capture *gocv.VideoCapture
	var err error
	if api == gocv.VideoCaptureFFmpeg {
		capture, err = gocv.VideoCaptureFileWithAPIParams(address, api, []gocv.VideoCaptureProperties{
			propertyOpenTimeout, gocv.VideoCaptureProperties(options.OpenTimeout.Milliseconds()),
			propertyReadTimeout, gocv.VideoCaptureProperties(options.ReadTimeout.Milliseconds()),
		})
	} else {
		capture, err = gocv.VideoCaptureFileWithAPI(address, api)
	}
	if err != nil || !capture.IsOpened() {
		_ = capture.Close()
		// gocv's text quotes the address with its credentials and says nothing else.
		return nil, u.fail("open", ErrUnavailable, gocv.VideoRegistry.GetBackendName(api)+" cannot open it", "", nil)
	}
	v := &video{uri: u, live: true, capture: capture, patience: options.ReadTimeout}
	if fps := capture.Get(gocv.VideoCaptureFPS); fps > 0 && fps <= maxRate {
		v.fps = fps
	}
	v.decoder = decoder{into: capture.Retrieve, picture: colourPicture, limit: sizeLimit(options.MaxPixels)}
	told := size{int(capture.Get(gocv.VideoCaptureFrameWidth)), int(capture.Get(gocv.VideoCaptureFrameHeight))}
	if told.width > 0 && told.height > 0 {
		if err := v.decoder.limit.check(told, engine.BGR); err != nil {
			_ = v.Close()
			var refused *Error
			if errors.As(err, &refused) {
				return nil, u.fail("open", ErrFormat, refused.Message, refused.Hint, nil)
			}
			return nil, err
		}
	}
	return v, nil
}

func (v *video) Live() bool   { return v.live }
func (v *video) FPS() float64 { return v.fps }

// Next implements Source.
func (v *video) Next(lend Lender) (Frame, error) {
	if v.capture == nil {
		return Frame{}, io.EOF
	}
	asked := Monotonic()
	grabbed := grab(v.capture)
	captured, now := Monotonic(), time.Now()
	if captured-asked >= int64(v.patience)*9/10 {
		v.late = captured
	}
	if !grabbed {
		return Frame{}, v.end()
	}
	f, err := v.decode(lend)
	seq := v.seq
	v.seq++
	if errors.Is(err, errNoPicture) {
		return Frame{}, v.uri.fail("read", ErrPicture, "not a picture that OpenCV can read", "", nil)
	}
	if err != nil {
		return Frame{}, v.uri.named(err)
	}
	f.Seq, f.Captured, f.Time = seq, captured, now
	if !v.live {
		f.position = v.position(seq)
	}
	return f, nil
}

// decode puts the picture that was grabbed into a lent buffer.
func (v *video) decode(lend Lender) (Frame, error) {
	if v.raw == nil {
		return v.decoder.decode(lend)
	}
	if !v.capture.Retrieve(v.raw) {
		return Frame{}, errNoPicture
	}
	data, err := v.raw.DataPtrUint8()
	if err != nil {
		return Frame{}, errNoPicture
	}
	v.encoded.encoded = append(v.encoded.encoded[:0], data...)
	return v.encoded.decode(lend)
}

// position is when the film shows the picture that was decoded last: by its own time stamp, else by its number.
func (v *video) position(seq uint64) time.Duration {
	if milliseconds := v.capture.Get(gocv.VideoCapturePosMsec); milliseconds > 0 {
		return time.Duration(milliseconds * float64(time.Millisecond))
	}
	if v.fps == 0 {
		return 0
	}
	return time.Duration(float64(seq) / v.fps * float64(time.Second))
}

// end is what the absence of a picture means. FFmpeg that has waited in vain first gives the pictures that it still holds.
func (v *video) end() error {
	switch {
	case v.live && v.late != 0 && Monotonic()-v.late < int64(time.Second):
		return v.uri.fail("read", ErrStalled, "no picture for "+v.patience.String(), "", nil)
	case v.seq == 0:
		return v.uri.fail("read", ErrUnavailable, "it opened but gave no picture", "", nil)
	case v.live:
		return v.uri.fail("read", ErrUnavailable, "the stream ended", "", nil)
	}
	return io.EOF
}

// Close implements Source.
func (v *video) Close() error {
	v.decoder.forget()
	v.encoded.decoder.forget()
	if v.raw != nil {
		_ = v.raw.Close()
		v.raw = nil
	}
	if v.capture == nil {
		return nil
	}
	capture := v.capture
	v.capture = nil
	return capture.Close()
}

// named puts the camera's name into an error of the decoder.
func (u URI) named(err error) error {
	var typed *Error
	if errors.As(err, &typed) && typed.URI == "" {
		named := *typed
		named.URI = u.String()
		return &named
	}
	return err
}
