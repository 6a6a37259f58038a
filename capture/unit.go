package capture

import "time"

// Codec is the compression of a video.
type Codec uint8

// The codecs of streams.
const (
	UnknownCodec Codec = iota
	H264
	H265
	MJPEG
)

// String returns the codec's usual name.
func (c Codec) String() string {
	switch c {
	case H264:
		return "H.264"
	case H265:
		return "H.265"
	case MJPEG:
		return "MJPEG"
	}
	return "unknown codec"
}

// Unit is an access unit: the encoded data of one image. Units are shared by all readers of a stream and must not be changed.
type Unit struct {
	Codec Codec
	// Data is a JPEG, or NAL units with start codes of four bytes (Annex B). Parameter sets precede every key frame.
	Data []byte
	// Key is set if decoding can begin with this unit.
	Key bool
	// Gap is set if data was lost between the unit before and this one, or within this one: images up to the next key frame may lack it.
	Gap bool
	// PTS is when to show the image, on the stream's clock.
	PTS time.Duration
	// Received is when the unit was complete, in nanoseconds of CLOCK_MONOTONIC.
	Received int64
	// Camera is when the image was taken by the camera's clock, from RTCP sender reports; zero if unknown.
	Camera time.Time
}

// Decoder turns access units into images. One goroutine uses it.
type Decoder interface {
	// Submit decodes a unit, which may yield any number of images. An error that is ErrImage concerns this unit alone; after any other error
	// the decoder must be closed. ErrFormat is one that another decoder may not have, as with a unit of another codec.
	Submit(unit *Unit) error
	// Next returns the next decoded image, or false if there is none before the next unit. An error of the lender is returned unchanged, and
	// the image is lost; ErrImage concerns this image alone; after any other error the decoder must be closed. After End, io.EOF follows the
	// last image. Captured, Time and CameraTime of the frame are those of its unit; Time is zero if the unit's is unknown.
	Next(lend Lender) (Frame, bool, error)
	// End reports that no unit follows: the images that waited for later units come out.
	End() error
	// Lost returns the number of units since the last call that gave neither an image nor an error, such as those without their references.
	Lost() uint64
	// Close frees the decoder; frames remain valid. It is idempotent.
	Close() error
}

// BackgroundDecoder is a Decoder with threads of its own. One goroutine may call Submit and End, another one Await and Next, and any Close,
// which makes them return.
type BackgroundDecoder interface {
	// Submit waits until the decoder has time for the unit, which takes as long as the images before are not taken. Next does not wait.
	Decoder
	// Await waits until Next has an image or an error, for at most that long, and reports whether it has.
	Await(limit time.Duration) bool
}
