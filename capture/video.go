package capture

import (
	"errors"
	"io"
	"time"

	"gocv.io/x/gocv"
)

// Decoder is who reads and decodes a stream for OpenCV.
type Decoder string

// The decoders that a caller may insist on.
const (
	FFmpeg    Decoder = "ffmpeg"
	GStreamer Decoder = "gstreamer"
)

// OpenCV's numbers for its time-outs, which gocv does not name. Only the FFmpeg backend knows them; the others refuse to open.
const (
	propertyOpenTimeout = 53 // ms
	propertyReadTimeout = 54 // ms
)

// video is a cv::VideoCapture: a file, a stream, a device or a pipeline.
type video struct {
	uri     URI
	live    bool
	fps     float64
	capture *gocv.VideoCapture
	decoder decoder
	seq     uint64
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
	v := &video{uri: u, live: true, capture: capture}
	if fps := capture.Get(gocv.VideoCaptureFPS); fps > 0 && fps <= maxRate {
		v.fps = fps
	}
	v.decoder = decoder{into: capture.Retrieve, picture: colourPicture}
	return v, nil
}

func (v *video) Live() bool   { return v.live }
func (v *video) FPS() float64 { return v.fps }

// Next implements Source.
func (v *video) Next(lend Lender) (Frame, error) {
	if v.capture == nil || !grab(v.capture) {
		return Frame{}, v.end()
	}
	captured, now := Monotonic(), time.Now()
	f, err := v.decoder.decode(lend)
	if errors.Is(err, errNoPicture) {
		return Frame{}, v.end()
	}
	seq := v.seq
	v.seq++
	if err != nil {
		return Frame{}, v.uri.named(err)
	}
	f.Seq, f.Captured, f.Time = seq, captured, now
	if !v.live {
		f.position = v.position(seq)
	}
	return f, nil
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

// end is what the absence of a picture means.
func (v *video) end() error {
	switch {
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
