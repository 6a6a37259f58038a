package source

import (
	"errors"
	"io"
	"os"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// backend is the library that reads and decodes a stream.
type backend string

const (
	byFFmpeg    backend = "ffmpeg"
	byGStreamer backend = "gstreamer"
)

// OpenCV's numbers of its timeouts, which gocv does not define. Only the FFmpeg backend supports them; others refuse to open.
const (
	propertyOpenTimeout = 53 // ms
	propertyReadTimeout = 54 // ms
)

// propertyOrientationAuto is OpenCV's number of whether its FFmpeg backend turns images, which gocv does not define either.
const propertyOrientationAuto = 49

// video is a cv::VideoCapture: a file, a stream or a device.
type video struct {
	uri         capture.URI
	live        bool
	fps         float64
	readTimeout time.Duration // read timeout of the backend
	timedOutAt  int64         // when a read last took about readTimeout, CLOCK_MONOTONIC
	capture     *gocv.VideoCapture
	decoder     decoder
	raw         *gocv.Mat     // the encoded image of a device that compresses; nil for others
	compressed  encodedImage  // copy of raw
	ring        *capture.Ring // of such images; nil without KeepUnits, and for others
	seq         uint64
	grabbed     bool          // an image has been grabbed already
	position    time.Duration // of the newest image of a file
}

// openVideo opens address with one of OpenCV's backends, as a live source of BGR images.
func openVideo(u capture.URI, address string, api gocv.VideoCaptureAPI, options settings) (*video, error) {
	if !gocv.VideoRegistry.HasBackend(api) {
		message := "this OpenCV is built without " + gocv.VideoRegistry.GetBackendName(api)
		return nil, u.NewError("open", capture.ErrUnavailable, message, "", nil)
	}
	var opened *gocv.VideoCapture
	var err error
	if api == gocv.VideoCaptureFFmpeg {
		opened, err = gocv.VideoCaptureFileWithAPIParams(address, api, []gocv.VideoCaptureProperties{
			propertyOpenTimeout, gocv.VideoCaptureProperties(options.OpenTimeout.Milliseconds()),
			propertyReadTimeout, gocv.VideoCaptureProperties(options.ReadTimeout.Milliseconds()),
		})
	} else {
		opened, err = gocv.VideoCaptureFileWithAPI(address, api)
	}
	if err != nil || !opened.IsOpened() {
		_ = opened.Close()
		// gocv's message quotes the address with its credentials and adds nothing.
		return nil, u.NewError("open", capture.ErrUnavailable, gocv.VideoRegistry.GetBackendName(api)+" cannot open it", "", nil)
	}
	v := &video{uri: u, live: true, capture: opened, readTimeout: options.ReadTimeout}
	if fps := opened.Get(gocv.VideoCaptureFPS); fps > 0 && fps <= capture.MaxRate {
		v.fps = fps
	}
	v.decoder = decoder{decode: opened.Retrieve, interpret: interpretColour, limit: sizeLimit(options.MaxPixels)}
	declared := size{int(opened.Get(gocv.VideoCaptureFrameWidth)), int(opened.Get(gocv.VideoCaptureFrameHeight))}
	if declared.width > 0 && declared.height > 0 {
		if err := v.decoder.limit.check(declared, engine.BGR); err != nil {
			_ = v.Close()
			var refused *capture.Error
			if errors.As(err, &refused) {
				return nil, u.NewError("open", capture.ErrFormat, refused.Message, refused.Hint, nil)
			}
			return nil, err
		}
	}
	return v, nil
}

// turn lets the image of an AVIF or HEIF file be decoded as it is shown.
func (v *video) turn(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	start, err := io.ReadAll(io.LimitReader(file, heifHeader))
	if err != nil {
		return err
	}
	orientation := heifOrientation(start)
	if orientation == upright {
		return nil
	}
	v.capture.Set(propertyOrientationAuto, 0) // newer versions of FFmpeg turn it, too
	retrieve := v.decoder.decode
	v.decoder.decode = func(mat *gocv.Mat) bool {
		stored := gocv.NewMat()
		defer stored.Close()
		return retrieve(&stored) && !stored.Empty() && orient(stored, mat, orientation) == nil
	}
	return nil
}

func (v *video) Live() bool   { return v.live }
func (v *video) FPS() float64 { return v.fps }

// Next implements capture.Source.
func (v *video) Next(lend capture.Lender) (capture.Frame, error) {
	if v.capture == nil {
		return capture.Frame{}, io.EOF
	}
	started := capture.Monotonic()
	grabbed := v.grabbed || grab(v.capture)
	v.grabbed = false
	captured, now := capture.Monotonic(), time.Now()
	if captured-started >= int64(v.readTimeout)*9/10 {
		v.timedOutAt = captured
	}
	if !grabbed {
		v.grabbed = v.skipDamaged()
		if !v.grabbed {
			return capture.Frame{}, v.endError()
		}
		return capture.Frame{}, v.uri.NewError("read", capture.ErrImage, "damaged images are skipped", "", nil)
	}
	f, err := v.decode(lend)
	seq := v.seq
	v.seq++
	if errors.Is(err, errNoImage) {
		return capture.Frame{}, v.uri.NewError("read", capture.ErrImage, "not an image that OpenCV can read", "", nil)
	}
	if err != nil {
		return capture.Frame{}, withURI(v.uri, err)
	}
	f.Seq, f.Captured, f.Time = seq, captured, now
	v.compressed.keep(v.ring, captured)
	if !v.live {
		f.Position, f.FPS = v.frameTime(seq), v.fps
		v.position = max(v.position, f.Position)
	}
	return f, nil
}

// decode decodes the grabbed image into a lent buffer.
func (v *video) decode(lend capture.Lender) (capture.Frame, error) {
	if v.raw == nil {
		return v.decoder.read(lend)
	}
	if !v.capture.Retrieve(v.raw) {
		return capture.Frame{}, errNoImage
	}
	data, err := v.raw.DataPtrUint8()
	if err != nil {
		return capture.Frame{}, errNoImage
	}
	v.compressed.data = append(v.compressed.data[:0], data...)
	return v.compressed.decode(lend)
}

// frameTime returns the position of the last decoded image in the video, by its time stamp or else by its number.
func (v *video) frameTime(seq uint64) time.Duration {
	if milliseconds := v.capture.Get(gocv.VideoCapturePosMsec); milliseconds > 0 {
		return time.Duration(milliseconds * float64(time.Millisecond))
	}
	if v.fps == 0 {
		return 0
	}
	return time.Duration(float64(seq) / v.fps * float64(time.Second))
}

// maxDamaged is how many consecutive damaged images are tolerated before the video counts as ended.
const maxDamaged = 256

// skipDamaged searches for an image after one that could not be read: OpenCV's FFmpeg backend reports a damaged image like the end.
func (v *video) skipDamaged() bool {
	if v.live || v.seq == 0 {
		return false
	}
	began := capture.Monotonic()
	for range maxDamaged {
		if grab(v.capture) {
			return true
		}
		if capture.Monotonic()-began > int64(v.readTimeout) { // the server is gone
			break
		}
	}
	return false
}

// Progress implements capture.Video.
func (v *video) Progress() (reached, declared time.Duration) {
	if v.capture == nil || v.fps == 0 {
		return v.position, 0
	}
	seconds := v.capture.Get(gocv.VideoCaptureFrameCount) / v.fps
	const longest = 1e6 // FFmpeg reports larger values for an unknown length
	if seconds > 0 && seconds < longest {
		declared = time.Duration(seconds * float64(time.Second))
	}
	return v.position, declared
}

// endError returns the meaning of a missing image. After a timeout FFmpeg first returns the images that it still holds.
func (v *video) endError() error {
	switch {
	case v.live && v.timedOutAt != 0 && capture.Monotonic()-v.timedOutAt < int64(time.Second):
		return v.uri.NewError("read", capture.ErrStalled, "no image for "+v.readTimeout.String(), "", nil)
	case v.seq == 0 && !v.live && v.uri.Kind == capture.HTTP:
		return v.uri.NewError("read", capture.ErrUnavailable, "it opened but returned no image",
			"download it first: the server may give whole files only, and this one has its index at the end", nil)
	case v.seq == 0:
		return v.uri.NewError("read", capture.ErrUnavailable, "it opened but returned no image", "", nil)
	case v.live:
		return v.uri.NewError("read", capture.ErrUnavailable, "the stream ended", "", nil)
	}
	return io.EOF
}

// Ring implements capture.Packets.
func (v *video) Ring() *capture.Ring { return v.ring }

// Close implements capture.Source.
func (v *video) Close() error {
	if v.ring != nil {
		v.ring.End(io.EOF)
	}
	v.decoder.closeMats()
	v.compressed.decoder.closeMats()
	if v.raw != nil {
		_ = v.raw.Close()
		v.raw = nil
	}
	if v.capture == nil {
		return nil
	}
	opened := v.capture
	v.capture = nil
	return opened.Close()
}

// withURI adds the camera's URI to an error of the decoder.
func withURI(u capture.URI, err error) error {
	var typed *capture.Error
	if errors.As(err, &typed) && typed.URI == "" {
		named := *typed
		named.URI = u.String()
		return &named
	}
	return err
}
