package web

import (
	"math"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/postprocess"
)

// observation is a copy of what a frame gave, for goroutines that may take their time over it.
type observation struct {
	camera        string
	seq           uint64
	time          time.Time
	width, height int
	latency       time.Duration
	labels        []string
	detections    []postprocess.Finding
	shapes        []shape // of the detections
	details       report.Details
	ids           []uint64
	tracks        []postprocess.Track
	zones         []zoneCount
	lines         []lineCount
}

// zoneCount and lineCount are counters at the moment, as they are shown.
type zoneCount struct {
	Name     string `json:"name"`
	Occupied int    `json:"occupied"`
	Entered  int    `json:"entered"`
}

type lineCount struct {
	Name string `json:"name"`
	In   int    `json:"in"`
	Out  int    `json:"out"`
}

// copy allocates nothing once it has seen the largest frame. Frame goroutine only.
func (o *observation) copy(in *pipeline.Inferred) {
	o.camera, o.seq, o.time, o.width, o.height, o.latency, o.labels = in.Camera, in.Seq, in.Time, in.Width, in.Height, in.Latency, in.Labels
	o.detections = append(o.detections[:0], in.Detections...)
	o.shapes = o.shapes[:0]
	o.details.Begin()
	for i := range o.detections {
		d := o.details.Of(&o.detections[i], in.Width, in.Height)
		o.shapes = append(o.shapes, shape{d.Keypoints, d.Corners, d.Mask.Polygons})
		o.detections[i].Detail = nil // it belongs to the frame
	}
	o.ids = append(o.ids[:0], in.IDs...)
	o.tracks = append(o.tracks[:0], in.Tracks...)
	for i := range o.tracks {
		o.tracks[i].Detail = nil
	}
	o.zones, o.lines = o.zones[:0], o.lines[:0]
	if in.Follower == nil {
		return
	}
	for i := range in.Follower.Config.Zones {
		count := in.Follower.ZoneCount(i)
		o.zones = append(o.zones, zoneCount{in.Follower.Config.Zones[i].Name, sum(count.Occupied), sum(count.Entered)})
	}
	for i := range in.Follower.Config.Lines {
		count := in.Follower.LineCount(i)
		o.lines = append(o.lines, lineCount{in.Follower.Config.Lines[i].Name, sum(count.In), sum(count.Out)})
	}
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// frameMessage is an observation as the page reads it. Boxes are x1, y1, x2, y2 in source pixels, as in the messages over MQTT.
type frameMessage struct {
	Camera     string      `json:"camera"`
	Seq        uint64      `json:"seq"`
	Time       time.Time   `json:"time"`
	Width      int         `json:"width"`
	Height     int         `json:"height"`
	LatencyMS  float64     `json:"latency_ms"`
	Detections []detection `json:"detections"`
	// Lost are followed objects that no detection belongs to, where they are expected to be.
	Lost  []detection `json:"lost"`
	Zones []zoneCount `json:"zones"`
	Lines []lineCount `json:"lines"`
}

type detection struct {
	Label string     `json:"label"`
	Class int        `json:"class"`
	Score float64    `json:"score"`
	Box   [4]float64 `json:"box"`
	Track uint64     `json:"track,omitempty"`
	shape
}

// shape is what some tasks say of an object beside its box, in source pixels.
type shape struct {
	Keypoints [][3]float64   `json:"keypoints,omitempty"` // x, y and how likely it is visible
	Corners   [][2]float64   `json:"corners,omitempty"`   // of a turned box
	Polygons  [][][2]float64 `json:"polygons,omitempty"`  // outlines of the mask
}

// rounded is a copy with as many decimals as can be seen.
func (s *shape) rounded() (r shape) {
	for _, k := range s.Keypoints {
		r.Keypoints = append(r.Keypoints, [3]float64{round(k[0], 1), round(k[1], 1), round(k[2], 2)})
	}
	r.Corners = roundedPoints(s.Corners)
	for _, polygon := range s.Polygons {
		r.Polygons = append(r.Polygons, roundedPoints(polygon))
	}
	return r
}

func roundedPoints(points [][2]float64) (r [][2]float64) {
	for _, p := range points {
		r = append(r, [2]float64{round(p[0], 1), round(p[1], 1)})
	}
	return r
}

func (o *observation) message() *frameMessage {
	m := &frameMessage{
		Camera: o.camera, Seq: o.seq, Time: o.time, Width: o.width, Height: o.height, LatencyMS: round(milliseconds(o.latency), 3),
		Detections: make([]detection, 0, len(o.detections)), Lost: []detection{},
		Zones: append([]zoneCount{}, o.zones...), Lines: append([]lineCount{}, o.lines...),
	}
	for i := range o.detections {
		d := newDetection(&o.detections[i], o.labels)
		if i < len(o.shapes) {
			d.shape = o.shapes[i].rounded()
		}
		if i < len(o.ids) {
			d.Track = o.ids[i]
		}
		m.Detections = append(m.Detections, d)
	}
	for i := range o.tracks {
		if t := &o.tracks[i]; t.State == postprocess.Lost {
			d := newDetection(&t.Finding, o.labels)
			d.Track = t.ID
			m.Lost = append(m.Lost, d)
		}
	}
	return m
}

func newDetection(d *postprocess.Finding, labels []string) detection {
	return detection{Label: label(labels, d.Class), Class: d.Class, Score: round(float64(d.Score), 3), Box: corners(d.Box)}
}

func label(labels []string, class int) string {
	if class >= 0 && class < len(labels) {
		return labels[class]
	}
	return ""
}

func corners(b postprocess.Box) [4]float64 {
	return [4]float64{round(float64(b.X1), 1), round(float64(b.Y1), 1), round(float64(b.X2), 1), round(float64(b.Y2), 1)}
}

// round keeps that many decimals. JSON has no word for NaN and infinity; they become 0.
func round(v float64, decimals int) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow10(decimals)
	return math.Round(v*unit) / unit
}
