// Package sink holds the consumers of frame results: broker, JSON lines, snapshots. Each is a pipeline.Sink.
package sink

import (
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Publisher publishes each frame's detections to the broker and as JSON lines. Frame goroutine only.
type Publisher struct {
	Client *mqtt.Client // nil when MQTT is off
	JSON   *report.JSON // nil without JSON lines

	Masks report.MaskForm
	Maps  report.Maps

	Module payload.AnalyticsModule // in DeepStream's messages

	Seen *SeenLabels // records what is counted; nil for nothing

	message payload.Detections
	details report.Details
	encoded []byte
	// objects as last published in Frigate's events, by identity
	frigateObjects map[string]payload.Tracked
}

// Frame implements pipeline.Sink.
func (p *Publisher) Frame(in *pipeline.Result) {
	m := &p.message
	m.Camera, m.Sequence, m.Time, m.Width, m.Height, m.Latency = in.Camera, in.Seq, in.Time, in.Width, in.Height, in.Latency
	m.Objects = m.Objects[:0]
	p.details.Masks = p.Masks
	p.details.Begin()
	for i := range in.Detections {
		object := p.details.Detection(&in.Detections[i], in.Labels, in.Width, in.Height)
		if i < len(in.IDs) {
			object.Track = in.IDs[i]
		}
		if in.Attributes != nil && object.Track != 0 {
			object.Attributes = p.details.Attributes(in.Attributes.Of(object.Track))
		}
		m.Objects = append(m.Objects, object)
	}
	if m.Map = nil; in.Map != nil {
		m.Map = p.Maps.Of(in.Map, in.MapStats, in.Labels, in.Width, in.Height)
	}
	if p.Client != nil {
		if in.Events != nil {
			p.publishEvents(in)
		}
		if in.Frame == nil {
			return // the camera is over, this was its last word
		}
		begun := capture.Monotonic()
		p.encoded = m.AppendJSON(p.encoded[:0], p.Client.Device)
		encoded := capture.Monotonic()
		p.Client.Detections(in.Camera, p.encoded)
		if p.Client.DeepStream != "" && !p.Client.DeepStreamFull {
			p.encoded = m.AppendDeepStream(p.encoded[:0])
			p.Client.DeepStreamFrame(in.Camera, p.encoded)
		}
		in.Stages.Record(stage.Encode, time.Duration(encoded-begun))
		in.Stages.Record(stage.HandOff, time.Duration(capture.Monotonic()-encoded))
	}
	if in.Frame == nil {
		return
	}
	if p.JSON != nil {
		p.JSON.Detections(m, in.Lossless)
	}
}

// publishEvents publishes events and the counters that have changed.
func (p *Publisher) publishEvents(in *pipeline.Result) {
	configuration := &in.Tracker.Config
	for i := range in.Events.Events {
		p.event(in, configuration, &in.Events.Events[i])
	}
	for _, change := range in.Events.Changes {
		label := postprocess.Label(in.Labels, change.Class)
		switch change.Counter {
		case zone.Present:
			p.Client.Count(in.Camera, label, change.Value)
			if change.Value > 0 && p.Seen != nil {
				p.Seen.Add(in.Camera, label)
			}
			p.Client.Count(in.Camera, allLabels, sum(in.Tracker.Counts()))
		case zone.Occupied:
			name := configuration.Zones[change.Index].Name
			p.Client.Zone(in.Camera, name, label, change.Value)
			p.Client.Zone(in.Camera, name, allLabels, sum(in.Tracker.ZoneCount(change.Index).Occupied))
		case zone.Inward, zone.Outward:
			count := in.Tracker.LineCount(change.Index)
			name := configuration.Lines[change.Index].Name
			p.Client.Line(in.Camera, name, sum(count.In), sum(count.Out))
			p.Client.LineLabel(in.Camera, name, label, count.In[change.Class], count.Out[change.Class])
		}
	}
}

// allLabels is the label of a total.
const allLabels = "all"

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

func (p *Publisher) event(in *pipeline.Result, configuration *zone.Config, e *zone.Event) {
	o := e.Object
	message := payload.Event{
		Type: string(e.Kind), Camera: in.Camera, Sequence: e.Seq, Time: e.Time, Label: postprocess.Label(in.Labels, o.Class), Class: o.Class,
		Score: float64(o.Score), TopScore: float64(o.TopScore), Box: report.Corners(o.Box), Track: o.Track, Start: o.Start,
		Direction: string(e.Direction), Dwell: e.Dwell, Median: float64(o.MedianScore), Object: o.ID(), Stationary: o.Stationary,
	}
	if configuration.Ground != nil {
		message.Ground = &payload.Ground{Speed: o.Speed, MeanSpeed: o.MeanSpeed, Distance: o.Distance, Heading: o.Heading}
	}
	if in.Attributes != nil {
		message.Attributes = p.details.Attributes(in.Attributes.Of(o.Track))
		if e.Kind == zone.Update || e.Kind == zone.End {
			message.Embedding = p.details.Embedding(in.Attributes.Embedding(o.Track))
		}
	}
	if e.Zone >= 0 {
		message.Zone = configuration.Zones[e.Zone].Name
	}
	if e.Line >= 0 {
		message.Line = configuration.Lines[e.Line].Name
	}
	message.Zones, message.Entered = zoneNames(configuration, o.Zones), zoneNames(configuration, o.Entered)
	if e.Kind == zone.End {
		message.End = o.LastSeen
		for _, point := range o.Path {
			message.Path = append(message.Path, [2]float64{point.X, point.Y})
		}
	}
	id := p.Client.Event(&message)
	if p.Client.DeepStream != "" && p.Client.DeepStreamFull {
		p.Client.DeepStreamEvent(&message, id, &p.Module)
	}
	if p.Client.Frigate != "" {
		p.frigate(in, configuration, e, &message)
	}
}

// frigate publishes the event in Frigate's format, which has three types and the object before and after.
func (p *Publisher) frigate(in *pipeline.Result, configuration *zone.Config, e *zone.Event, message *payload.Event) {
	now := payload.Tracked{
		Object: message.Object, Camera: in.Camera, Label: message.Label, Time: message.Time, Start: message.Start, End: message.End,
		Score: message.Score, TopScore: message.TopScore, Box: message.Box, Width: in.Width, Height: in.Height, Zones: message.Zones,
		Entered: message.Entered, Stationary: message.Stationary, Attributes: slices.Clone(message.Attributes),
	}
	kind, key := "update", in.Camera+"/"+message.Object
	before, known := p.frigateObjects[key]
	switch {
	case e.Kind == zone.End:
		kind = "end"
	case !known:
		kind = "new"
	}
	if !known {
		before = now
	}
	p.Client.FrigateEvent(kind, &before, &now)
	if p.frigateObjects == nil {
		p.frigateObjects = map[string]payload.Tracked{}
	}
	if p.frigateObjects[key] = now; kind == "end" {
		delete(p.frigateObjects, key)
	}
	for _, label := range []string{now.Label, allLabels} {
		p.Client.FrigateActive(in.Camera, "", label, p.active(in.Camera, "", label))
		for _, zone := range configuration.Zones {
			if slices.Contains(before.Zones, zone.Name) || slices.Contains(now.Zones, zone.Name) {
				p.Client.FrigateActive(in.Camera, zone.Name, label, p.active(in.Camera, zone.Name, label))
			}
		}
	}
}

// active counts the objects that move, in the camera's image or a zone of it.
func (p *Publisher) active(camera, zone, label string) (n int) {
	for _, o := range p.frigateObjects {
		if o.Camera == camera && !o.Stationary && (label == allLabels || o.Label == label) && (zone == "" || slices.Contains(o.Zones, zone)) {
			n++
		}
	}
	return n
}

func zoneNames(configuration *zone.Config, numbers []int) (names []string) {
	for _, number := range numbers {
		names = append(names, configuration.Zones[number].Name)
	}
	return names
}
