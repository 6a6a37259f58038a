package sink

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

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
