package live

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// MaxEvents is how many events are held of all cameras together.
const MaxEvents = 4096

// eventStore holds the latest events. When it is full the camera that has the most gives up its oldest, so that a busy one drives no quiet one
// out, and a single one has it all.
type eventStore struct {
	events map[string][]Event // by camera, oldest first
	count  int
}

// add remembers an event. Updates are left out: they are many, and that an object's box is a better one is nothing to look for later.
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

// evict makes room: an eighth of what the busiest camera has, for not to move the rest at every event.
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

// EventTypes are those of the events that are remembered.
func EventTypes() []zone.Kind {
	return []zone.Kind{zone.New, zone.Enter, zone.Leave, zone.Loiter, zone.Cross, zone.End}
}

// Query says which events are wanted. Empty fields are for any.
type Query struct {
	Camera string
	Type   string
	Text   string // words, all of which are in an event's label, track, camera, zone or line, in large letters or small ones
	Limit  int    // how many at most, the newest ones
}

// find gives what is wanted, newest first.
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

// lastEvent is when something happened to an object last; zero when that is not remembered.
func (m *eventStore) lastEvent(camera, object string) time.Time {
	for _, e := range slices.Backward(m.events[camera]) {
		if e.Object == object {
			return e.received
		}
	}
	return time.Time{}
}
