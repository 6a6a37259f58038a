package web

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// happening is a copy of a zone.Event.
type happening struct {
	camera, label, zone, line string
	kind                      zone.Kind
	direction                 zone.Direction
	seq, track                uint64
	time, start               time.Time
	score                     float32
	box                       postprocess.Box
	dwell                     time.Duration
}

func newHappening(in *pipeline.Inferred, e *zone.Event) happening {
	o, c := e.Object, &in.Follower.Config
	h := happening{
		camera: in.Camera, label: label(in.Labels, o.Class), kind: e.Kind, direction: e.Direction, seq: e.Seq, track: o.Track, time: e.Time,
		start: o.Start, score: o.TopScore, box: o.Box, dwell: e.Dwell,
	}
	if e.Zone >= 0 && e.Zone < len(c.Zones) {
		h.zone = c.Zones[e.Zone].Name
	}
	if e.Line >= 0 && e.Line < len(c.Lines) {
		h.line = c.Lines[e.Line].Name
	}
	return h
}

// event is something that happened, as the page lists it.
type event struct {
	Number    uint64     `json:"number"` // counts the events of the run
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

func (h *happening) event(number uint64) event {
	object := zone.Object{Track: h.track, Start: h.start}
	return event{
		Number: number, Object: object.ID(), Type: string(h.kind), Camera: h.camera, Seq: h.seq, Time: h.time, Label: h.label, Track: h.track,
		Score: round(float64(h.score), 3), Box: corners(h.box), Zone: h.zone, Line: h.line, Direction: string(h.direction),
		DwellS: round(h.dwell.Seconds(), 1),
	}
}
