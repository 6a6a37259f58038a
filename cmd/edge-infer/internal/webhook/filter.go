package webhook

import (
	"slices"

	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// Filter selects events. Empty fields match any; without Events updates are left out.
type Filter struct {
	Events  []string // types, see payload.Event
	Cameras []string
	Labels  []string
	Zones   []string // the event's own, or for other events one that the object has been in
}

// Match reports whether the filter selects an event.
func (f *Filter) Match(e *payload.Event) bool {
	if len(f.Events) == 0 && e.Type == "update" {
		return false
	}
	zones := e.Entered
	if e.Zone != "" {
		zones = []string{e.Zone}
	}
	return matches(f.Events, e.Type) && matches(f.Cameras, e.Camera) && matches(f.Labels, e.Label) && matches(f.Zones, zones...)
}

// matches reports whether one of the values is listed, or nothing is.
func matches(list []string, values ...string) bool {
	return len(list) == 0 || slices.ContainsFunc(values, func(value string) bool { return slices.Contains(list, value) })
}
