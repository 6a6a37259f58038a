package live

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// eventCopy is a copy of a zone.Event that outlives the frame.
type eventCopy struct {
	camera, label, zone, line string
	kind                      zone.Kind
	direction                 zone.Direction
	seq, track                uint64
	time, start               time.Time
	score                     float32
	box                       postprocess.Box
	dwell                     time.Duration
}

func copyEvent(in *pipeline.Result, e *zone.Event) eventCopy {
	o, config := e.Object, &in.Tracker.Config
	to := eventCopy{
		camera: in.Camera, label: postprocess.Label(in.Labels, o.Class), kind: e.Kind, direction: e.Direction, seq: e.Seq, track: o.Track,
		time: e.Time, start: o.Start, score: o.TopScore, box: o.Box, dwell: e.Dwell,
	}
	if e.Zone >= 0 && e.Zone < len(config.Zones) {
		to.zone = config.Zones[e.Zone].Name
	}
	if e.Line >= 0 && e.Line < len(config.Lines) {
		to.line = config.Lines[e.Line].Name
	}
	return to
}

// Event is an event as viewers receive it.
type Event struct {
	Number    uint64     `json:"number"` // sequence number in the run
	Object    string     `json:"object"` // zone.Object.ID
	Type      string     `json:"type"`
	Camera    string     `json:"camera"`
	Seq       uint64     `json:"seq"`
	Time      time.Time  `json:"time"`
	Label     string     `json:"label"`
	Track     uint64     `json:"track"`
	Score     float64    `json:"score"`
	Box       [4]float64 `json:"box"`
	Zone      string     `json:"zone,omitempty"`
	Line      string     `json:"line,omitempty"`
	Direction string     `json:"direction,omitempty"`
	DwellS    float64    `json:"dwell_s,omitempty"`
}

func (c *eventCopy) event(number uint64) Event {
	object := zone.Object{Track: c.track, Start: c.start}
	return Event{
		Number: number, Object: object.ID(), Type: string(c.kind), Camera: c.camera, Seq: c.seq, Time: c.time, Label: c.label, Track: c.track,
		Score: round(float64(c.score), 3), Box: corners(c.box), Zone: c.zone, Line: c.line, Direction: string(c.direction),
		DwellS: round(c.dwell.Seconds(), 1),
	}
}

// corners returns the corners rounded to 0.1 pixels.
func corners(b postprocess.Box) (all [4]float64) {
	for i, v := range report.Corners(b) {
		all[i] = round(v, 1)
	}
	return all
}
