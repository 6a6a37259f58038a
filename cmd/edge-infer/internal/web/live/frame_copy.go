package live

import (
	"math"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
)

// frameCopy is a copy of a pipeline result that outlives the frame.
type frameCopy struct {
	camera        string
	seq           uint64
	time          time.Time
	captured      int64 // CLOCK_MONOTONIC
	width, height int
	latency       time.Duration
	details       report.Details // of the detections
	detections    []payload.Detection
	speeds        []float64           // of the detections in m/s; below 0 if unknown
	lost          []payload.Detection // lost tracks at their predicted boxes
	zones         []zoneCount
	lines         []lineCount
	maps          report.Maps
	mapPayload    *payload.Map // nil for object detectors
	grid          grid
}

// grid is a segmentation or depth map as the page paints it, row by row: class numbers (255 for none) or depth levels from 1 (0 for none).
type grid struct {
	Width  int    `json:"width"`
	Height int    `json:"height"`
	Cells  []byte `json:"cells"`
}

// gridSide is the number of cells of its longer side.
const gridSide = 96

// zoneCount and lineCount are the current counts.
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

// copy copies a result. It does not allocate once its buffers have grown to the largest frame. Frame goroutine only.
func (o *frameCopy) copy(in *pipeline.Result) {
	o.captured = in.Captured
	o.camera, o.seq = in.Camera, in.Seq
	o.time, o.width = in.Time, in.Width
	o.height, o.latency = in.Height, in.Latency
	o.details.Begin()
	o.detections, o.speeds, o.lost = o.detections[:0], o.speeds[:0], o.lost[:0]
	for i := range in.Detections {
		d := o.details.Detection(&in.Detections[i], in.Labels, in.Width, in.Height)
		if i < len(in.IDs) {
			d.Track = in.IDs[i]
		}
		o.detections = append(o.detections, d)
		o.speeds = append(o.speeds, speed(in, d.Track))
	}
	for i := range in.Tracks {
		if t := &in.Tracks[i]; t.State == postprocess.Lost {
			box := postprocess.Detection{Box: t.Box, Score: t.Score, Class: t.Class} // without its mask, which belongs to an earlier frame
			d := o.details.Detection(&box, in.Labels, in.Width, in.Height)
			d.Track = t.ID
			o.lost = append(o.lost, d)
		}
	}
	if o.mapPayload = nil; in.Map != nil {
		o.mapPayload = o.maps.Of(in.Map, in.MapStats, in.Labels, in.Width, in.Height)
		o.grid.Cells, o.grid.Width, o.grid.Height = o.maps.Cells(o.grid.Cells[:0], in.Map, in.MapStats, gridSide, in.Width, in.Height)
	}
	o.zones, o.lines = o.zones[:0], o.lines[:0]
	if in.Tracker == nil {
		return
	}
	for i := range in.Tracker.Config.Zones {
		count := in.Tracker.ZoneCount(i)
		o.zones = append(o.zones, zoneCount{in.Tracker.Config.Zones[i].Name, sum(count.Occupied), sum(count.Entered)})
	}
	for i := range in.Tracker.Config.Lines {
		count := in.Tracker.LineCount(i)
		o.lines = append(o.lines, lineCount{in.Tracker.Config.Lines[i].Name, sum(count.In), sum(count.Out)})
	}
}

// speed returns the speed of a track in m/s, below 0 if unknown.
func speed(in *pipeline.Result, track uint64) float64 {
	if in.Tracker == nil || in.Tracker.Config.Ground == nil || track == 0 {
		return -1
	}
	if object := in.Tracker.Object(track); object != nil {
		return object.Speed
	}
	return -1
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// frameMessage is the JSON of a frame for the page, with the field names of the MQTT messages.
type frameMessage struct {
	Camera     string              `json:"camera"`
	Seq        uint64              `json:"seq"`
	Time       time.Time           `json:"time"`
	Captured   int64               `json:"captured_us"` // when the image arrived, CLOCK_MONOTONIC
	Width      int                 `json:"width"`
	Height     int                 `json:"height"`
	LatencyMS  float64             `json:"latency_ms"`
	Detections []payload.Detection `json:"detections"`
	Lost       []payload.Detection `json:"lost"`
	Names      map[string][]string `json:"keypoint_names,omitempty"`
	Speeds     []float64           `json:"speeds,omitempty"` // of the detections in m/s, below 0 if unknown
	Zones      []zoneCount         `json:"zones"`
	Lines      []lineCount         `json:"lines"`
	Semantic   *payload.Map        `json:"semantic,omitempty"`
	Depth      *payload.Map        `json:"depth,omitempty"`
	Map        *grid               `json:"map,omitempty"`
}

// message returns the message, which is valid until the next copy. None of its slices is nil.
func (o *frameCopy) message() *frameMessage {
	m := &frameMessage{
		Camera: o.camera, Seq: o.seq, Time: o.time, Captured: o.captured / int64(time.Microsecond), Width: o.width, Height: o.height,
		LatencyMS:  round(milliseconds(o.latency), 3),
		Detections: append([]payload.Detection{}, o.detections...), Lost: append([]payload.Detection{}, o.lost...),
		Zones: append([]zoneCount{}, o.zones...), Lines: append([]lineCount{}, o.lines...),
	}
	for i := range o.detections {
		m.Names = o.detections[i].AddNames(m.Names)
	}
	if o.mapPayload != nil {
		if m.Map = &o.grid; o.mapPayload.Unit != "" {
			m.Depth = o.mapPayload
		} else {
			m.Semantic = o.mapPayload
		}
	}
	for i, speed := range o.speeds {
		if speed >= 0 && m.Speeds == nil {
			m.Speeds = slices.Repeat([]float64{-1}, len(o.speeds))
		}
		if speed >= 0 {
			m.Speeds[i] = round(speed, 2)
		}
	}
	return m
}

// round rounds to this number of decimals. NaN and infinity, which JSON cannot represent, become 0.
func round(v float64, decimals int) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow10(decimals)
	return math.Round(v*unit) / unit
}
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
