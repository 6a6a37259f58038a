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
	"github.com/edge-infer/edge-infer/mqtt/topic"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Publisher publishes each frame's detections and counts to the broker and as JSON lines, as a pipeline.Sink, and events to the broker, as
// an Output. The two may be called by different goroutines.
type Publisher struct {
	Client *mqtt.Client // nil when MQTT is off
	JSON   *report.JSON // nil without JSON lines

	Masks report.MaskForm
	Maps  report.Maps

	Module payload.AnalyticsModule // in DeepStream's messages

	Seen *SeenLabels // records what is counted; nil for nothing

	Store EventStore // nil for none

	// RepeatInterval is how long after an event others of its type, label, zone and line are marked as repeated.
	RepeatInterval time.Duration

	// Frame only
	message payload.Detections
	details report.Details
	encoded []byte

	// Event only
	// published is when the latest event that is no repetition was published
	published map[eventKind]time.Time
	// objects as last published in Frigate's events, by identity
	frigateObjects map[string]payload.Tracked
}

// EventStore keeps events with their images and clips; *store.Store is one.
type EventStore interface {
	// HasClip reports whether there is a clip of a recent event. It must not block.
	HasClip(camera, id string) bool
}

// Frame implements pipeline.Sink.
func (p *Publisher) Frame(in *pipeline.Result) {
	m := &p.message
	m.Camera = in.Camera
	m.Sequence = in.Seq
	m.Time = in.Time
	m.Latency = in.Latency
	m.Width = in.Width
	m.Height = in.Height
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
			p.publishCounts(in)
		}
		if p.Seen != nil && in.Tracker != nil {
			p.Seen.Frame(in.Camera, in.Captured, in.Tracker.Counts(), in.Labels)
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
		if in.Frame.CameraTime {
			in.Stages.Record(stage.CameraToMessage, time.Since(in.Frame.Time))
		}
	}
	if in.Frame == nil {
		return
	}
	if p.JSON != nil {
		p.JSON.Detections(m, in.Lossless)
	}
}

// publishCounts publishes the counters that have changed.
func (p *Publisher) publishCounts(in *pipeline.Result) {
	configuration := &in.Tracker.Config
	for _, change := range in.Events.Changes {
		label := postprocess.Label(in.Labels, change.Class)
		switch change.Counter {
		case zone.Present:
			p.Client.Count(in.Camera, topic.CountLabel(label), change.Value)
			p.Client.Count(in.Camera, topic.Total, sum(in.Tracker.Counts()))
		case zone.Occupied:
			name := configuration.Zones[change.Index].Name
			p.Client.Zone(in.Camera, name, topic.CountLabel(label), change.Value)
			p.Client.Zone(in.Camera, name, topic.Total, sum(in.Tracker.ZoneCount(change.Index).Occupied))
		case zone.Inward, zone.Outward:
			count := in.Tracker.LineCount(change.Index)
			name := configuration.Lines[change.Index].Name
			p.Client.Line(in.Camera, name, sum(count.In), sum(count.Out))
			p.Client.LineLabel(in.Camera, name, label, count.In[change.Class], count.Out[change.Class])
		}
	}
}

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// Event implements Output.
func (p *Publisher) Event(e *Event) {
	if p.Client == nil {
		return
	}
	message := e.Message
	message.Repeated = message.Type != string(zone.Update) && p.isRepeated(&message)
	id := p.Client.Event(&message)
	if p.Client.DeepStream != "" && p.Client.DeepStreamFull {
		p.Client.DeepStreamEvent(&message, id, &p.Module)
	}
	if p.Client.Frigate != "" {
		p.frigate(e)
	}
}

// eventKind is what repeated events have in common.
type eventKind struct{ camera, kind, label, zone, line string }

// isRepeated reports whether an event like this one was published less than RepeatInterval before. If not, this one counts for the next.
func (p *Publisher) isRepeated(e *payload.Event) bool {
	key := eventKind{e.Camera, e.Type, e.Label, e.Zone, e.Line}
	before, known := p.published[key]
	since := e.Time.Sub(before)
	if known && since >= 0 && since < p.RepeatInterval { // below 0 the clock was set back
		return true
	}
	if p.published == nil {
		p.published = map[eventKind]time.Time{}
	}
	p.published[key] = e.Time
	return false
}

// frigate publishes the event in Frigate's format, which has three types and the object before and after.
func (p *Publisher) frigate(e *Event) {
	message := &e.Message
	now := payload.Tracked{
		Object: message.Object, Camera: message.Camera, Label: message.Label, Time: message.Time, Start: message.Start, End: message.End,
		Score: message.Score, TopScore: message.TopScore, Box: message.Box, Width: e.Width, Height: e.Height, Zones: message.Zones,
		Entered: message.Entered, Stationary: message.Stationary, Attributes: message.Attributes,
	}
	if p.Store != nil {
		now.Snapshot = e.Snapshot
		now.Clip = p.Store.HasClip(message.Camera, message.Object)
	}
	kind, key := "update", message.Camera+"/"+message.Object
	before, known := p.frigateObjects[key]
	switch {
	case message.Type == string(zone.End):
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
	for _, label := range []string{topic.CountLabel(now.Label), topic.Total} {
		p.Client.FrigateActive(now.Camera, "", label, p.active(now.Camera, "", label))
		for _, zone := range before.Zones {
			p.Client.FrigateActive(now.Camera, zone, label, p.active(now.Camera, zone, label))
		}
		for _, zone := range now.Zones {
			if !slices.Contains(before.Zones, zone) {
				p.Client.FrigateActive(now.Camera, zone, label, p.active(now.Camera, zone, label))
			}
		}
	}
}

// active counts the objects of a label of topic.CountLabel or of all that move, in the camera's image or a zone of it.
func (p *Publisher) active(camera, zone, label string) (n int) {
	for _, o := range p.frigateObjects {
		counted := label == topic.Total || label == topic.CountLabel(o.Label)
		if o.Camera == camera && !o.Stationary && counted && (zone == "" || slices.Contains(o.Zones, zone)) {
			n++
		}
	}
	return n
}
