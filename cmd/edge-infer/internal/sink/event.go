package sink

import (
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Event is an event on its way to the outputs. It shares no memory with the frame loop.
type Event struct {
	Message payload.Event
	Stored  *store.Event // for the event store; nil for updates, which it does not keep
	// Width and Height are the size of the source image in pixels.
	Width, Height int
	Snapshot      bool // an image of the object was taken
}

// Output keeps or publishes events, of one goroutine at a time. Event must return in microseconds and must not change the event.
type Output interface {
	Event(*Event)
}

// Events passes the events of results to outputs, each event in the order of the outputs: the store comes before those that publish.
type Events struct {
	To []Output

	details report.Details
}

var _ pipeline.Sink = (*Events)(nil)

// Frame implements pipeline.Sink. Without an event it costs nothing.
func (s *Events) Frame(in *pipeline.Result) {
	if in.Events == nil || in.Tracker == nil {
		return
	}
	for i := range in.Events.Events {
		e := &in.Events.Events[i]
		s.details.Begin()
		event := &Event{
			Message: eventOf(in, e, &s.details), Width: in.Width, Height: in.Height, Snapshot: !e.Object.Best.Time.IsZero(),
		}
		event.Message.Attributes, event.Message.Embedding = slices.Clone(event.Message.Attributes), slices.Clone(event.Message.Embedding)
		if e.Kind != zone.Update {
			event.Stored = store.EventOf(in, e)
		}
		for _, output := range s.To {
			output.Event(event)
		}
	}
}

// Storing is the event store as an output.
type Storing struct{ Store *store.Store }

// Event implements Output. Updates of an object that is there are not stored: its other events carry what has changed.
func (s Storing) Event(e *Event) {
	if e.Stored != nil {
		s.Store.Add(e.Stored)
	}
}

// eventOf converts an event of a result. Its attributes and embedding are valid until the next Begin of details.
func eventOf(in *pipeline.Result, e *zone.Event, details *report.Details) payload.Event {
	o, configuration := e.Object, &in.Tracker.Config
	message := payload.Event{
		Type: string(e.Kind), Camera: in.Camera, Sequence: e.Seq, Time: e.Time, Label: postprocess.Label(in.Labels, o.Class), Class: o.Class,
		Score: float64(o.Score), TopScore: float64(o.TopScore), Box: report.Corners(o.Box), Track: o.Track, Start: o.Start,
		Direction: string(e.Direction), Dwell: e.Dwell, Median: float64(o.MedianScore), Object: o.ID(), Stationary: o.Stationary,
	}
	if configuration.Ground != nil {
		message.Ground = &payload.Ground{Speed: o.Speed, MeanSpeed: o.MeanSpeed, Distance: o.Distance, Heading: o.Heading}
	}
	if in.Attributes != nil {
		message.Attributes = details.Attributes(in.Attributes.Of(o.Track))
		if e.Kind == zone.Update || e.Kind == zone.End {
			message.Embedding = details.Embedding(in.Attributes.Embedding(o.Track))
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
	return message
}

func zoneNames(configuration *zone.Config, numbers []int) (names []string) {
	for _, number := range numbers {
		names = append(names, configuration.Zones[number].Name)
	}
	return names
}
