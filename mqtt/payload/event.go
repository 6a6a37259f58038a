package payload

import (
	"strconv"
	"time"
)

// Event is the payload of <camera>/events. Zero fields are omitted.
type Event struct {
	ID string // of an event that has one before it is queued; empty for the queue's
	// Type is new, update or end of a track; enter, leave or loiter in a zone; cross of a line.
	Type     string
	Camera   string
	Sequence uint64    // frame it was seen in
	Time     time.Time // when that frame was captured
	Label    string
	Class    int
	Score    float64
	TopScore float64    // best score of the track
	Median   float64    // median of its latest scores
	Object   string     // the object's identity, the same in all of its events and never another's
	Box      [4]float64 // x1, y1, x2, y2 in source pixels; all zero when there is none
	Track    uint64
	Start    time.Time // when the track began
	End      time.Time // when it ended
	Zone     string
	Zones    []string // zones the object is in
	Entered  []string // zones it has been in, in the order of entry
	// Path is where the object has been, as points in source pixels; of the end of a track.
	Path [][2]float64
	Line string
	// Direction of a crossing, in or out.
	Direction string
	// Stationary is whether the object stays in its place. It is no field of <camera>/events.
	Stationary bool
	Dwell      time.Duration // time in the zone
	// Ground is how the object moves on the ground; nil without a calibration.
	Ground *Ground
	// Attributes are the results of secondary networks.
	Attributes []Attribute
	// Embedding is as in Detail.
	Embedding []byte
	// Repeated is set if an event of the same type, label, zone and line was published shortly before.
	Repeated bool
	// Verified is whether a verification service has confirmed the object; nil if none was asked.
	Verified *bool
}

// Ground is how an object moves on the ground.
type Ground struct {
	Speed, MeanSpeed float64 // metres a second
	Distance         float64 // metres of its way so far
	Heading          float64 // degrees from the calibration's first point to its second; below 0 before it has moved
}

func (g *Ground) append(buf []byte) []byte {
	buf = AppendDecimal(append(buf, `,"speed_mps":`...), g.Speed)
	buf = AppendDecimal(append(buf, `,"mean_speed_mps":`...), g.MeanSpeed)
	buf = AppendDecimal(append(buf, `,"distance_m":`...), g.Distance)
	if g.Heading >= 0 {
		buf = AppendDecimal(append(buf, `,"heading_deg":`...), g.Heading)
	}
	return buf
}

// AppendJSON appends the payload to buf and returns it. The run and the number of the event in it make the id of an event without one.
func (e *Event) AppendJSON(buf []byte, device, run string, number uint64) []byte {
	buf = append(buf, Version+`"id":"`...)
	buf = e.appendID(buf, run, number)
	buf = append(buf, `","type":`...)
	buf = AppendString(buf, e.Type)
	buf = append(buf, `,"device":`...)
	buf = AppendString(buf, device)
	buf = append(buf, `,"camera":`...)
	buf = AppendString(buf, e.Camera)
	buf = append(buf, `,"seq":`...)
	buf = strconv.AppendUint(buf, e.Sequence, 10)
	buf = appendTimeField(buf, e.Time)
	buf = append(buf, `,"label":`...)
	buf = AppendString(buf, e.Label)
	buf = append(buf, `,"class":`...)
	buf = strconv.AppendInt(buf, int64(e.Class), 10)
	if e.Score != 0 {
		buf = append(buf, `,"score":`...)
		buf = AppendDecimal(buf, e.Score)
	}
	if e.TopScore != 0 {
		buf = append(buf, `,"top_score":`...)
		buf = AppendDecimal(buf, e.TopScore)
	}
	if e.Median != 0 {
		buf = append(buf, `,"median_score":`...)
		buf = AppendDecimal(buf, e.Median)
	}
	if e.Object != "" {
		buf = append(buf, `,"object":`...)
		buf = AppendString(buf, e.Object)
	}
	if e.Box != [4]float64{} {
		buf = append(buf, `,"box":`...)
		buf = appendBox(buf, &e.Box, AppendDecimal)
	}
	if e.Track != 0 {
		buf = append(buf, `,"track":`...)
		buf = strconv.AppendUint(buf, e.Track, 10)
	}
	if !e.Start.IsZero() {
		buf = append(buf, `,"start":`...)
		buf = appendTime(buf, e.Start)
	}
	if !e.End.IsZero() {
		buf = append(buf, `,"end":`...)
		buf = appendTime(buf, e.End)
		buf = append(buf, `,"duration_s":`...)
		buf = AppendDecimal(buf, e.End.Sub(e.Start).Seconds())
	}
	if e.Zone != "" {
		buf = append(buf, `,"zone":`...)
		buf = AppendString(buf, e.Zone)
	}
	buf = appendNames(buf, `,"zones":[`, e.Zones)
	buf = appendNames(buf, `,"entered":[`, e.Entered)
	buf = appendPath(buf, e.Path)
	if e.Line != "" {
		buf = append(buf, `,"line":`...)
		buf = AppendString(buf, e.Line)
	}
	if e.Direction != "" {
		buf = append(buf, `,"direction":`...)
		buf = AppendString(buf, e.Direction)
	}
	if e.Dwell != 0 {
		buf = append(buf, `,"dwell_s":`...)
		buf = AppendDecimal(buf, e.Dwell.Seconds())
	}
	if e.Ground != nil {
		buf = e.Ground.append(buf)
	}
	buf = appendVerified(appendRepeated(buf, e.Repeated), e.Verified)
	return append(appendEmbedding(appendAttributes(buf, e.Attributes), e.Embedding), '}')
}

// appendID appends the id that the event has, or that of a queue's run and number.
func (e *Event) appendID(buf []byte, run string, number uint64) []byte {
	if e.ID != "" {
		return append(buf, e.ID...)
	}
	return strconv.AppendUint(append(append(buf, run...), '-'), number, 10)
}

// appendVerified appends the field verified, or nothing.
func appendVerified(buf []byte, verified *bool) []byte {
	if verified == nil {
		return buf
	}
	return strconv.AppendBool(append(buf, `,"verified":`...), *verified)
}

// appendRepeated appends the field repeated, or nothing.
func appendRepeated(buf []byte, repeated bool) []byte {
	if repeated {
		buf = append(buf, `,"repeated":true`...)
	}
	return buf
}

// appendPath appends the field path, or nothing.
func appendPath(buf []byte, path [][2]float64) []byte {
	if len(path) == 0 {
		return buf
	}
	buf = append(buf, `,"path":[`...)
	for i, point := range path {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(buf, '[')
		buf = AppendDecimal(buf, point[0])
		buf = append(buf, ',')
		buf = AppendDecimal(buf, point[1])
		buf = append(buf, ']')
	}
	return append(buf, ']')
}

// appendNames appends a list that key opens, or nothing.
func appendNames(buf []byte, key string, names []string) []byte {
	if len(names) == 0 {
		return buf
	}
	buf = append(buf, key...)
	for i, name := range names {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = AppendString(buf, name)
	}
	return append(buf, ']')
}

// EventTypes returns the types of the events of objects, in the order of an object's life.
func EventTypes() []string {
	return []string{"new", "update", "enter", "loiter", "leave", "cross", "end"}
}
