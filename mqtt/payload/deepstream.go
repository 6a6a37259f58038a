package payload

import (
	"strconv"
	"time"
)

// AppendDeepStream appends the detections as DeepStream's message converter (Gst-nvmsgconv) writes a frame in its minimal schema, version
// 4.0: the frame's number as text, its time in milliseconds, the camera as sensorId, and one text an object,
//
//	track|left|top|right|bottom|label
//
// in source pixels. What further networks say follows as |#|value|value|score, with the score of the detection. Objects that nobody follows
// have track -1, as DeepStream's have without a tracker: the largest uint64. A | in a label becomes a space. It allocates nothing when buf
// has room.
func (d *Detections) AppendDeepStream(buf []byte) []byte {
	buf = append(buf, `{"version":"4.0","id":"`...)
	buf = strconv.AppendUint(buf, d.Sequence, 10)
	buf = append(buf, `","@timestamp":`...)
	buf = appendTime(buf, d.Time.Truncate(time.Millisecond))
	buf = append(buf[:len(buf)-len(`000Z"`)], `Z","sensorId":`...)
	buf = AppendString(buf, d.Camera)
	buf = append(buf, `,"objects":[`...)
	for i := range d.Objects {
		o := &d.Objects[i]
		track := o.Track
		if track == 0 {
			track = untracked
		}
		buf = append(separate(buf, i), '"')
		buf = strconv.AppendUint(buf, track, 10)
		for _, side := range o.Box {
			buf = AppendDecimal(append(buf, '|'), side)
		}
		buf = appendField(buf, o.Label)
		if len(o.Attributes) > 0 {
			buf = append(buf, `|#`...)
			for k := range o.Attributes {
				buf = appendField(buf, o.Attributes[k].Value)
			}
			buf = AppendDecimal(append(buf, '|'), o.Score)
		}
		buf = append(buf, '"')
	}
	return append(buf, `]}`...)
}

// untracked is DeepStream's UNTRACKED_OBJECT_ID.
const untracked = 1<<64 - 1

// appendField appends a separator and a text inside of a JSON string.
func appendField(buf []byte, text string) []byte {
	buf = append(buf, '|')
	start := len(buf)
	buf = AppendString(buf, text)
	inside := buf[start+1 : len(buf)-1] // without its quotes
	for i, c := range inside {
		if c == '|' {
			inside[i] = ' '
		}
	}
	return buf[:start+copy(buf[start:], inside)]
}
