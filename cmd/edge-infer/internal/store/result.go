package store

import (
	"math"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// EventOf copies an event of a result and its object.
func EventOf(in *pipeline.Result, e *zone.Event) *Event {
	o, configuration := e.Object, &in.Tracker.Config
	to := &Event{
		ID: o.ID(), Camera: in.Camera, Label: postprocess.Label(in.Labels, o.Class), Start: o.Start, Last: o.LastSeen, Ended: e.Kind == zone.End,
	}
	to.Score = round(float64(o.TopScore), 3)
	box := o.Box
	if o.Best.Seq != 0 || !o.Best.Time.IsZero() {
		box = o.Best.Box
	}
	to.Box = [4]float64{round(float64(box.X1), 1), round(float64(box.Y1), 1), round(float64(box.X2), 1), round(float64(box.Y2), 1)}
	to.Width, to.Height = in.Width, in.Height
	for _, number := range o.Entered {
		to.Zones = append(to.Zones, configuration.Zones[number].Name)
	}
	if e.Line >= 0 {
		to.Lines = []Crossing{{configuration.Lines[e.Line].Name, string(e.Direction)}}
	}
	if attributes := in.Attributes.Of(o.Track); len(attributes) > 0 {
		to.Attributes = make(map[string]Attribute, len(attributes))
		for i := range attributes {
			to.Attributes[attributes[i].Name] = Attribute{attributes[i].Value, round(float64(attributes[i].Score), 3)}
		}
	}
	to.Length, to.Distance = round(length(o.Path), 1), round(o.Distance, 2)
	if to.Ended {
		for _, p := range o.Path {
			to.Path = append(to.Path, [2]int{int(p.X), int(p.Y)})
		}
	}
	return to
}

// length returns the length of a path.
func length(path []zone.Point) (sum float64) {
	for i := 1; i < len(path); i++ {
		sum += math.Hypot(path[i].X-path[i-1].X, path[i].Y-path[i-1].Y)
	}
	return sum
}

// round rounds to a number of digits after the point. JSON has no NaN and no infinity, which a broken calibration could yield.
func round(v float64, digits int) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow10(digits)
	return math.Round(v*unit) / unit
}
