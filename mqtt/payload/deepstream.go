package payload

import (
	"strconv"
	"time"
)

// AppendDeepStream appends the detections as DeepStream's message converter (Gst-nvmsgconv) writes a frame in its minimal schema, version
// 4.0: the frame's number as text, its time in milliseconds, the camera as sensorId, and one text per object,
// track|left|top|right|bottom|label in source pixels. Results of secondary networks follow as |#|value|value|score, with the score of the
// detection. Untracked objects have track -1, the largest uint64, as in DeepStream without a tracker. A | in a label becomes a space. It
// does not allocate if buf has room.
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

// AnalyticsModule describes this program in DeepStream's full schema.
type AnalyticsModule struct {
	ID      string // the model
	Version string // of the program
}

// DeepStreamType returns DeepStream's name of an event type; empty if it has none.
func DeepStreamType(e *Event) string {
	switch {
	case e.Type == "new", e.Type == "enter", e.Type == "cross" && e.Direction == "in":
		return "entry"
	case e.Type == "end", e.Type == "leave", e.Type == "cross":
		return "exit"
	case e.Type == "loiter":
		return "parked"
	case e.Type == "update" && e.Stationary:
		return "stopped"
	case e.Type == "update":
		return "moving"
	}
	return ""
}

// AppendDeepStream appends the event as DeepStream's message converter (Gst-nvmsgconv) writes it in its full schema, 1.0: one object with
// place, sensor and analytics module. The place is the device, or the zone or line of an event that has one. Results of secondary networks
// are fields next to the label's confidence. Unknown objects (location, coordinate, orientation) are empty, as the converter leaves them.
// Speed in metres per second and direction in degrees are 0 without a calibration. The box is in whole source pixels.
func (e *Event) AppendDeepStream(buf []byte, device, message, id string, by *AnalyticsModule) []byte {
	text := func(key, value string) { buf = AppendString(append(buf, key...), value) }
	text(`{"messageid":`, message)
	buf = appendTime(append(buf, `,"mdsversion":"1.0","@timestamp":`...), e.Time.Truncate(time.Millisecond))
	buf = append(buf[:len(buf)-len(`000Z"`)], `Z"`...)
	name, kind := device, "device"
	switch {
	case e.Zone != "":
		name, kind = e.Zone, "zone"
	case e.Line != "":
		name, kind = e.Line, "line"
	}
	text(`,"place":{"id":`, name)
	text(`,"name":`, name)
	text(`,"type":`, kind)
	text(`,"location":{}},"sensor":{"id":`, e.Camera)
	text(`,"type":"Camera","description":`, device)
	buf = append(buf, `,"location":{},"coordinate":{}},"analyticsModule":{"id":`...)
	text(``, by.ID)
	text(`,"description":"objects detected and followed","source":"edge-infer","version":`, by.Version)
	text(`},"object":{"id":`, e.Object)
	ground := Ground{}
	if e.Ground != nil {
		ground = *e.Ground
	}
	buf = AppendDecimal(append(buf, `,"speed":`...), ground.Speed)
	buf = AppendDecimal(append(buf, `,"direction":`...), max(ground.Heading, 0))
	text(`,"orientation":0,`, deepStreamLabel(e.Label))
	buf = AppendDecimal(append(buf, `:{"confidence":`...), e.Score)
	for i := range e.Attributes {
		if name := e.Attributes[i].Name; name != "confidence" {
			text(`,`, name)
			text(`:`, e.Attributes[i].Value)
		}
	}
	buf = append(buf, `},"bbox":{`...)
	for i, key := range [...]string{`"topleftx":`, `,"toplefty":`, `,"bottomrightx":`, `,"bottomrighty":`} {
		buf = strconv.AppendInt(append(buf, key...), int64(e.Box[i]), 10)
	}
	text(`},"location":{},"coordinate":{}},"event":{"id":`, id)
	text(`,"type":`, DeepStreamType(e))
	return append(buf, `},"videoPath":""}`...)
}

// deepStreamLabel returns a label as a field name of the object, distinct from those of the schema.
func deepStreamLabel(label string) string {
	switch label {
	case "", "id", "speed", "direction", "orientation", "bbox", "location", "coordinate":
		return label + "_"
	}
	return label
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
