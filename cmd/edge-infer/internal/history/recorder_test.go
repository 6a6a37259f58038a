package history

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

var follower = &pipeline.Tracker{Config: zone.Config{
	Zones: []zone.Zone{{Name: "yard"}}, Lines: []zone.Line{{Name: "gate"}}, Ground: &zone.Ground{},
}}

// noon is in the middle of a day of this machine's calendar.
var noon = time.Date(2026, 11, 20, 12, 30, 0, 0, time.Local)

// shown is a frame with one object whose foot is at x, y of 640x360.
func shown(at time.Time, x, y float32, events ...zone.Event) *pipeline.Result {
	return &pipeline.Result{
		Camera: "belt", Time: at, Width: 640, Height: 360, Labels: []string{"bolt", "nut"}, Frame: &capture.Frame{}, Tracker: follower,
		Detections: []postprocess.Detection{{Box: postprocess.Box{X1: x - 5, X2: x + 5, Y1: y - 20, Y2: y}}},
		Events:     &zone.Result{Events: events},
	}
}

func object(class int) *zone.Object {
	return &zone.Object{Detection: postprocess.Detection{Class: class}}
}

func TestCountsByHourAndWhere(t *testing.T) {
	r := &Recorder{}
	moved := object(1)
	moved.Distance, moved.Start, moved.LastSeen = 3, noon, noon.Add(2*time.Second)
	r.Frame(shown(noon, 100, 100, zone.Event{Kind: zone.New, Object: object(0)}, zone.Event{Kind: zone.Enter, Object: object(0)}))
	r.Frame(shown(noon.Add(200*time.Millisecond), 100, 100))
	r.Frame(shown(noon.Add(300*time.Millisecond), 639.9, 400, zone.Event{Kind: zone.Update, Object: object(0)}))
	r.Frame(shown(noon.Add(10*time.Second), 100, 100)) // nobody knows where it was meanwhile
	r.Frame(shown(noon.Add(time.Hour), 100, 100,
		zone.Event{Kind: zone.Leave, Object: object(0), Dwell: 90 * time.Second},
		zone.Event{Kind: zone.Cross, Object: moved, Direction: zone.Out},
		zone.Event{Kind: zone.Cross, Object: moved, Direction: zone.In}, zone.Event{Kind: zone.End, Object: moved},
		zone.Event{Kind: zone.End, Object: object(0)}))
	over := shown(noon.Add(time.Hour), 0, 0, zone.Event{Kind: zone.New, Object: object(1)})
	over.Frame, over.Detections = nil, nil
	r.Frame(over)

	day, days, err := r.Day(t.Context(), "belt", "")
	require.NoError(t, err)
	assert.Equal(t, []string{"2026-11-20"}, days)
	early := &Counts{Objects: map[string]int{"bolt": 1}, Zones: map[string]*Zone{"yard": {Entered: 1}}, Lines: map[string]*Line{}}
	assert.Equal(t, early, day.Hours[12])
	late := &Counts{
		Objects: map[string]int{"nut": 1}, Zones: map[string]*Zone{"yard": {Visits: 1, Dwell: 90}},
		Lines: map[string]*Line{"gate": {In: 1, Out: 1}}, Way: Way{1, 3, 2},
	}
	assert.Equal(t, late, day.Hours[13])
	assert.InDelta(t, 0.2, day.Heat[10*Columns+10], 1e-6)
	assert.InDelta(t, 0.1, day.Heat[Rows*Columns-1], 1e-6, "what hangs over the edge counts at the edge")
	totals := r.Totals()["belt"]
	assert.Equal(t, map[string]int{"bolt": 1, "nut": 1}, totals.Objects)
	assert.Equal(t, &Zone{1, 1, 90}, totals.Zones["yard"])
	other, days, err := r.Day(t.Context(), "nobody", "2026-11-20")
	require.NoError(t, err)
	assert.Empty(t, days)
	assert.Empty(t, other.Hours)
}

// stored is a store in memory.
type stored struct {
	failure error
	minutes map[int64]*Counts
	heat    map[string]*Heat
}

func (s *stored) AddCounts(_ context.Context, minutes []Minute, heat []DayHeat) error {
	if s.failure != nil {
		return s.failure
	}
	for _, m := range minutes {
		if s.minutes[m.Minute] == nil {
			s.minutes[m.Minute] = NewCounts()
		}
		s.minutes[m.Minute].Add(m.Counts)
	}
	for _, part := range heat {
		Entry(s.heat, part.Day).Add(part.Heat)
	}
	return nil
}

func (s *stored) Day(_ context.Context, camera, day string) (*Day, []string, error) {
	found := NewDay(camera, day)
	for minute, counts := range s.minutes {
		if at := time.Unix(60*minute, 0).Local(); DayOf(at) == day {
			found.Hour(at.Hour()).Add(counts)
		}
	}
	if s.heat[day] != nil {
		found.Heat.Add(s.heat[day])
	}
	return found, slices.Sorted(maps.Keys(s.heat)), nil
}

// What is saved, by this run or an earlier one, and what is not yet add up. What cannot be stored waits in memory, for two days.
func TestStoredCountsAddUp(t *testing.T) {
	to := &stored{minutes: map[int64]*Counts{}, heat: map[string]*Heat{}}
	open := func() *Recorder { return &Recorder{Store: to, Logger: slog.New(slog.DiscardHandler)} }
	enter := zone.Event{Kind: zone.Enter, Object: object(0)}
	entered := func(r *Recorder, day string) int {
		found, _, err := r.Day(t.Context(), "belt", day)
		require.NoError(t, err)
		return Entry(found.Hour(12).Zones, "yard").Entered
	}
	first := open()
	first.Frame(shown(noon, 100, 100, enter))
	first.save(t.Context())
	first.Frame(shown(noon.Add(time.Second), 100, 100, enter))
	first.Frame(shown(noon.Add(1100*time.Millisecond), 100, 100))
	assert.Equal(t, 2, entered(first, ""))
	to.failure = errors.New("disk")
	first.save(t.Context())
	assert.Equal(t, 2, entered(first, ""))
	first.Frame(shown(noon.Add(2*time.Second), 100, 100, enter))
	to.failure = nil
	first.save(t.Context())
	first.save(t.Context())
	assert.Equal(t, 3, entered(first, ""))
	second := open()
	assert.Equal(t, 3, entered(second, "2026-11-20"))
	assert.InDelta(t, 2, to.heat["2026-11-20"][10*Columns+10], 1e-5)
	to.failure = errors.New("disk")
	for days := 1; days <= 3; days++ {
		second.Frame(shown(noon.AddDate(0, 0, days), 100, 100, enter))
		second.save(t.Context())
	}
	to.failure = nil
	second.save(t.Context())
	_, days, err := open().Day(t.Context(), "belt", "")
	require.NoError(t, err)
	assert.Equal(t, []string{"2026-11-20", "2026-11-22", "2026-11-23"}, days)
	assert.Equal(t, 1, entered(open(), ""))
}

func TestNoAllocations(t *testing.T) {
	r := &Recorder{}
	frame := shown(noon, 100, 100, zone.Event{Kind: zone.Enter, Object: object(0)}, zone.Event{Kind: zone.New, Object: object(0)})
	r.Frame(frame)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		frame.Time = frame.Time.Add(10 * time.Millisecond)
		r.Frame(frame)
	}))
}
