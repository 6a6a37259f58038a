package live

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// MaxEvents is the number of events stored, of all cameras together.
const MaxEvents = 4096

// eventStore holds the latest events. When it is full, the camera with the most events loses its oldest, so that a busy camera does not
// evict the events of a quiet one.
type eventStore struct {
	events map[string][]Event // by camera, oldest first
	count  int
}

// add stores an event. Updates are ignored: they are frequent and of no use in a list.
func (m *eventStore) add(e Event) {
	if e.Type == string(zone.Update) {
		return
	}
	if m.count == MaxEvents {
		m.evict()
	}
	m.events[e.Camera] = append(m.events[e.Camera], e)
	m.count++
}

// evict removes the oldest eighth of the busiest camera's events, so that the rest is not moved at every event.
func (m *eventStore) evict() {
	var busiest string
	for camera, list := range m.events {
		if len(list) > len(m.events[busiest]) {
			busiest = camera
		}
	}
	count := (len(m.events[busiest]) + 7) / 8
	m.count -= count
	if m.events[busiest] = slices.Delete(m.events[busiest], 0, count); len(m.events[busiest]) == 0 {
		delete(m.events, busiest)
	}
}

// EventTypes returns the types of events that are stored.
func EventTypes() []zone.Kind {
	return []zone.Kind{zone.New, zone.Enter, zone.Leave, zone.Loiter, zone.Cross, zone.End}
}

// Query selects events. Empty fields match any.
type Query struct {
	Camera string
	Type   string
	Text   string // words that must all occur in label, track, camera, zone or line, ignoring case
	Limit  int    // maximum number of events, newest first
}

// find returns the matching events, newest first.
func (m *eventStore) find(q Query) []Event {
	words := strings.Fields(strings.ToLower(q.Text))
	found := []Event{}
	for camera, list := range m.events {
		if q.Camera != "" && q.Camera != camera {
			continue
		}
		for _, e := range list {
			if (q.Type == "" || q.Type == e.Type) && e.matches(words) {
				found = append(found, e)
			}
		}
	}
	slices.SortFunc(found, func(a, b Event) int { return cmp.Compare(b.Number, a.Number) })
	return found[:min(len(found), q.Limit)]
}

func (e *Event) matches(words []string) bool {
	if len(words) == 0 {
		return true
	}
	about := strings.ToLower(strings.Join([]string{e.Label, strconv.FormatUint(e.Track, 10), e.Camera, e.Zone, e.Line}, " "))
	return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(about, word) })
}

// lastEvent returns the time of receipt of an object's last event; zero if none is stored.
func (m *eventStore) lastEvent(camera, object string) time.Time {
	for _, e := range slices.Backward(m.events[camera]) {
		if e.Object == object {
			return e.received
		}
	}
	return time.Time{}
}
