package live

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func numbers(events []Event) (all []uint64) {
	for _, e := range events {
		all = append(all, e.Number)
	}
	return all
}

// TestABusyCameraDrivesNoQuietOneOut: what happened at a quiet one before is there after ten times as much as there is room for.
func TestABusyCameraDrivesNoQuietOneOut(t *testing.T) {
	f := opened()
	note := func(camera string, kind zone.Kind) { f.recorder.store(&eventCopy{camera: camera, kind: kind}) }
	for range 3 {
		note("quiet", zone.New)
	}
	for range 10 * MaxEvents {
		note("busy", zone.New)
		note("busy", zone.Update)
		note("other", zone.Update)
		require.LessOrEqual(t, f.recorder.stored.count, MaxEvents)
	}
	require.Equal(t, []uint64{3, 2, 1}, numbers(f.Events(Query{Camera: "quiet", Limit: MaxEvents})))
	all := f.Events(Query{Limit: MaxEvents})
	require.Len(t, all, f.recorder.stored.count)
	require.GreaterOrEqual(t, len(all), MaxEvents*7/8, "a camera alone has nearly all of it")
	require.Equal(t, uint64(3+30*MaxEvents-2), all[0].Number, "the newest, updates left out")
	require.True(t, slices.IsSortedFunc(all, func(a, b Event) int { return int(b.Number) - int(a.Number) }))

	// Two that are busy share.
	for range 2 * MaxEvents {
		note("busy", zone.New)
		note("too", zone.New)
	}
	for _, camera := range []string{"busy", "too"} {
		require.GreaterOrEqual(t, len(f.Events(Query{Camera: camera, Limit: MaxEvents})), MaxEvents*3/8)
	}
	require.Len(t, f.Events(Query{Camera: "quiet", Limit: MaxEvents}), 3)
}

func TestMoreCamerasThanRoom(t *testing.T) {
	m := eventStore{events: map[string][]Event{}}
	for i := range uint64(MaxEvents + 10) {
		m.add(Event{Number: i, Camera: time.Unix(int64(i), 0).String()})
	}
	require.Equal(t, MaxEvents, m.count)
	require.Len(t, m.events, MaxEvents)
}

func TestFind(t *testing.T) {
	m := eventStore{events: map[string][]Event{}}
	for i, e := range []Event{
		{Type: "enter", Camera: "yard", Label: "Person", Track: 41, Zone: "gate house"},
		{Type: "cross", Camera: "yard", Label: "car", Track: 42, Line: "gate"},
		{Type: "leave", Camera: "dock", Label: "person", Track: 7, Zone: "ramp"},
		{Type: "new", Camera: "dock", Label: "ÄPFEL", Track: 8},
	} {
		e.Number = uint64(i + 1)
		m.add(e)
	}
	for _, test := range []struct {
		query Query
		want  []uint64
	}{
		{Query{}, []uint64{4, 3, 2, 1}},
		{Query{Text: " PERSON "}, []uint64{3, 1}},
		{Query{Text: "person gate"}, []uint64{1}},
		{Query{Text: "gate"}, []uint64{2, 1}},
		{Query{Text: "yard", Type: "cross"}, []uint64{2}},
		{Query{Text: "person", Camera: "dock"}, []uint64{3}},
		{Query{Text: "person 7"}, []uint64{3}},
		{Query{Text: "äpfel"}, []uint64{4}},
		{Query{Text: "person car"}, nil},
		{Query{Camera: "roof"}, nil},
		{Query{Type: "loiter"}, nil},
	} {
		test.query.Limit = MaxEvents
		require.Equal(t, test.want, numbers(m.find(test.query)), "%+v", test.query)
	}
	require.Equal(t, []uint64{4, 3}, numbers(m.find(Query{Limit: 2})))
}
