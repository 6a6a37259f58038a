package payload

import (
	"strconv"
	"time"
)

// Tracked is an object in Frigate's events.
type Tracked struct {
	Object, Camera, Label string
	Time, Start           time.Time
	End                   time.Time // zero while it is there
	Score, TopScore       float64
	Box                   [4]float64 // x1, y1, x2, y2 in source pixels
	Width, Height         int        // of the image
	Zones, Entered        []string
	Stationary            bool
	Clip, Snapshot        bool // there is one, at the paths of Frigate's API
	// Attributes are the results of secondary networks; the first is Frigate's sub label.
	Attributes []Attribute
}

// AppendFrigate appends an event as Frigate publishes it on <prefix>/events: kind is new, update or end, before is the object as of the
// previous event, after as of now. Fields without a counterpart are omitted.
func AppendFrigate(buf []byte, kind string, before, after *Tracked) []byte {
	buf = append(buf, `{"type":`...)
	buf = AppendString(buf, kind)
	buf = append(buf, `,"before":`...)
	buf = before.appendJSON(buf)
	buf = append(buf, `,"after":`...)
	return append(after.appendJSON(buf), '}')
}

func (o *Tracked) appendJSON(buf []byte) []byte {
	buf = append(buf, `{"id":`...)
	buf = AppendString(buf, o.Object)
	buf = append(buf, `,"camera":`...)
	buf = AppendString(buf, o.Camera)
	buf = appendEpoch(append(buf, `,"frame_time":`...), o.Time)
	buf = append(buf, `,"snapshot":null,"label":`...)
	buf = AppendString(buf, o.Label)
	buf = append(buf, `,"sub_label":`...)
	if len(o.Attributes) > 0 {
		buf = AppendString(append(buf, '['), o.Attributes[0].Value)
		buf = append(AppendDecimal(append(buf, ','), o.Attributes[0].Score), ']')
	} else {
		buf = append(buf, `null`...)
	}
	buf = AppendDecimal(append(buf, `,"top_score":`...), o.TopScore)
	buf = appendEpoch(append(buf, `,"false_positive":false,"start_time":`...), o.Start)
	buf = appendEpoch(append(buf, `,"end_time":`...), o.End)
	buf = AppendDecimal(append(buf, `,"score":`...), o.Score)
	buf = append(buf, `,"box":[`...)
	for i, side := range o.Box {
		buf = strconv.AppendInt(separate(buf, i), int64(side), 10)
	}
	width, height := float64(int64(o.Box[2])-int64(o.Box[0])), float64(int64(o.Box[3])-int64(o.Box[1]))
	buf = AppendDecimal(append(buf, `],"area":`...), width*height)
	buf = AppendDecimal(append(buf, `,"ratio":`...), width/max(height, 1))
	buf = append(buf, `,"region":[0,0,`...)
	buf = strconv.AppendInt(buf, int64(o.Width), 10)
	buf = strconv.AppendInt(append(buf, ','), int64(o.Height), 10)
	buf = strconv.AppendBool(append(buf, `],"active":`...), !o.Stationary)
	buf = strconv.AppendBool(append(buf, `,"stationary":`...), o.Stationary)
	buf = appendList(buf, `,"current_zones":[`, o.Zones)
	buf = appendList(buf, `,"entered_zones":[`, o.Entered)
	buf = strconv.AppendBool(append(buf, `,"has_clip":`...), o.Clip)
	buf = strconv.AppendBool(append(buf, `,"has_snapshot":`...), o.Snapshot)
	return append(buf, `,"attributes":{},"current_attributes":[]}`...)
}

// appendList is appendNames for a list that is there when it is empty, too.
func appendList(buf []byte, key string, names []string) []byte {
	if len(names) == 0 {
		return append(append(buf, key...), ']')
	}
	return appendNames(buf, key, names)
}

// appendEpoch writes seconds since 1970 with microseconds, null for the zero time.
func appendEpoch(buf []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(buf, `null`...)
	}
	micros := max(t.UnixMicro(), 0)
	buf = strconv.AppendInt(buf, micros/1e6, 10)
	return appendDigits(append(buf, '.'), int(micros%1e6), 100_000)
}

// AppendFrigate appends the stats as Frigate publishes them on <prefix>/stats; processes, storage and detectors' counters are omitted.
// Rates are per second; inference_speed is in milliseconds.
func (s *Stats) AppendFrigate(buf []byte, now time.Time) []byte {
	var all CameraStats
	buf = append(buf, `{"cameras":{`...)
	for i := range s.Cameras {
		c := &s.Cameras[i]
		buf = AppendString(separate(buf, i), c.Name)
		buf = append(c.appendFrigate(append(buf, ':', '{')), '}')
		all.Captured += c.Captured
		all.Inferred += c.Inferred
		all.DroppedNewer += c.DroppedNewer
		all.DroppedMotion += c.DroppedMotion
	}
	buf = append(buf, `},"detectors":{"edge-infer":{"inference_speed":`...)
	buf = AppendMilliseconds(buf, s.Engine)
	buf = all.appendFrigate(append(buf, `}},`...))
	buf = strconv.AppendInt(append(buf, `,"service":{"uptime":`...), uptime(s.Started, now), 10)
	return append(strconv.AppendInt(append(buf, `,"last_updated":`...), now.Unix(), 10), '}', '}')
}

// appendFrigate appends the rates: process_fps are the frames taken, detection_fps the frames inferred.
func (c *CameraStats) appendFrigate(buf []byte) []byte {
	buf = AppendDecimal(append(buf, `"camera_fps":`...), c.Captured)
	buf = AppendDecimal(append(buf, `,"process_fps":`...), c.Inferred+c.DroppedMotion)
	buf = AppendDecimal(append(buf, `,"skipped_fps":`...), c.DroppedNewer)
	return AppendDecimal(append(buf, `,"detection_fps":`...), c.Inferred)
}
