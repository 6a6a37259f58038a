package payload

import (
	"strconv"
	"time"
)

// Detections is the payload of <camera>/detections. The caller owns it and may reuse it, Objects included, as soon as Client.Detections has
// returned.
type Detections struct {
	Camera        string
	Sequence      uint64    // the frame's number, per camera
	Time          time.Time // when the frame was captured
	Width, Height int       // source image in pixels
	Latency       time.Duration
	Objects       []Detection
	Map           *Map // of segmentation and depth networks; otherwise nil
}

// Detection is one object of a frame.
type Detection struct {
	Label string
	Class int
	Score float64    // 0 to 1
	Box   [4]float64 // x1, y1, x2, y2 in source pixels
	Track uint64     // 0: not tracked, and left out of the payload

	Detail `json:"-"` // written in a form of its own
}

// AppendJSON appends the payload to buf and returns it. It allocates nothing when buf has room.
func (d *Detections) AppendJSON(buf []byte, device string) []byte {
	buf = append(buf, Version+`"device":`...)
	buf = AppendString(buf, device)
	buf = append(buf, `,"camera":`...)
	buf = AppendString(buf, d.Camera)
	buf = append(buf, `,"seq":`...)
	buf = strconv.AppendUint(buf, d.Sequence, 10)
	buf = appendTimeField(buf, d.Time)
	buf = append(buf, `,"width":`...)
	buf = strconv.AppendInt(buf, int64(d.Width), 10)
	buf = append(buf, `,"height":`...)
	buf = strconv.AppendInt(buf, int64(d.Height), 10)
	buf = append(buf, `,"latency_ms":`...)
	buf = AppendMilliseconds(buf, d.Latency)
	buf = append(buf, `,"detections":[`...)
	for i := range d.Objects {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = d.Objects[i].appendJSON(buf, AppendDecimal)
	}
	buf = appendKeypointNames(append(buf, ']'), d.Objects)
	if d.Map != nil {
		buf = d.Map.AppendField(buf)
	}
	return append(buf, '}')
}

// MarshalJSON writes a detection as in messages, for encoding/json.
func (d Detection) MarshalJSON() ([]byte, error) { return d.appendJSON(nil, AppendDecimal), nil }

// Exact is a detection for those who compute on: its score and box keep every digit of the float32s that they were.
type Exact struct{ Detection }

// MarshalJSON has the fields of every detection.
func (e Exact) MarshalJSON() ([]byte, error) { return e.appendJSON(nil, appendFloat32), nil }

// appendJSON writes the score and the box with number.
func (d *Detection) appendJSON(buf []byte, number func([]byte, float64) []byte) []byte {
	buf = append(buf, `{"label":`...)
	buf = AppendString(buf, d.Label)
	buf = append(buf, `,"class":`...)
	buf = strconv.AppendInt(buf, int64(d.Class), 10)
	buf = append(buf, `,"score":`...)
	buf = number(buf, d.Score)
	buf = append(buf, `,"box":`...)
	buf = appendBox(buf, &d.Box, number)
	if d.Track != 0 {
		buf = append(buf, `,"track":`...)
		buf = strconv.AppendUint(buf, d.Track, 10)
	}
	return append(d.Detail.appendJSON(buf), '}')
}

func appendBox(buf []byte, box *[4]float64, number func([]byte, float64) []byte) []byte {
	for i, v := range box {
		buf = append(buf, "[,,,"[i])
		buf = number(buf, v)
	}
	return append(buf, ']')
}
