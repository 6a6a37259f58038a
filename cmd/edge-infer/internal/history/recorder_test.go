package history

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
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
func shown(camera string, at time.Time, x, y float32, events ...zone.Event) *pipeline.Result {
	return &pipeline.Result{
		Camera: camera, Time: at, Width: 640, Height: 360, Labels: []string{"bolt", "nut"}, Frame: &capture.Frame{}, Tracker: follower,
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
	r.Frame(shown("belt", noon, 100, 100, zone.Event{Kind: zone.New, Object: object(0)}, zone.Event{Kind: zone.Enter, Object: object(0)}))
	r.Frame(shown("belt", noon.Add(200*time.Millisecond), 100, 100))
	r.Frame(shown("belt", noon.Add(300*time.Millisecond), 639.9, 400, zone.Event{Kind: zone.Update, Object: object(0)}))
	r.Frame(shown("belt", noon.Add(10*time.Second), 100, 100)) // nobody knows where it was meanwhile
	r.Frame(shown("belt", noon.Add(time.Hour), 100, 100,
		zone.Event{Kind: zone.Leave, Object: object(0), Dwell: 90 * time.Second},
		zone.Event{Kind: zone.Cross, Object: moved, Direction: zone.Out},
		zone.Event{Kind: zone.Cross, Object: moved, Direction: zone.In}, zone.Event{Kind: zone.End, Object: moved},
		zone.Event{Kind: zone.End, Object: object(0)}))
	over := shown("belt", noon.Add(time.Hour), 0, 0, zone.Event{Kind: zone.New, Object: object(1)})
	over.Frame, over.Detections = nil, nil
	r.Frame(over)

	day, days, err := r.Day("belt", "")
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
	other, days, err := r.Day("nobody", "2026-11-20")
	require.NoError(t, err)
	assert.Empty(t, days)
	assert.Empty(t, other.Hours)
}

// What is saved, by this run or an earlier one, and what is not yet add up; days that are too old go.
func TestFilesAddUp(t *testing.T) {
	dir := t.TempDir()
	open := func() *Recorder { return &Recorder{Directory: dir, Days: 3, Logger: slog.New(slog.DiscardHandler)} }
	enter := zone.Event{Kind: zone.Enter, Object: object(0)}
	entered := func(r *Recorder, day string) int {
		found, _, err := r.Day("..", day)
		require.NoError(t, err)
		return found.hour(12).Zones["yard"].Entered
	}
	first := open()
	first.Frame(shown("..", noon, 100, 100, enter))
	first.save()
	first.Frame(shown("..", noon.Add(time.Second), 100, 100, enter))
	assert.Equal(t, 2, entered(first, ""))
	first.save()
	first.save()
	second := open()
	second.Frame(shown("..", noon.Add(2*time.Second), 100, 100, enter))
	assert.Equal(t, 3, entered(second, "2026-11-20"))
	for days := 1; days <= 3; days++ {
		second.Frame(shown("..", noon.AddDate(0, 0, days), 100, 100, enter))
	}
	second.save()
	assert.Equal(t, 1, entered(open(), ""))
	_, days, err := open().Day("..", "")
	require.NoError(t, err)
	assert.Equal(t, []string{"2026-11-21", "2026-11-22", "2026-11-23"}, days)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "whatever a camera is called, its files are in the directory")

	// A damaged file is put aside, and what is counted is not lost.
	path := filepath.Join(dir, "camera-..", "2026-11-23.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"heat":[1e39]}`), 0o600))
	_, _, err = open().Day("..", "")
	require.ErrorContains(t, err, path)
	third := open()
	third.Frame(shown("..", noon.AddDate(0, 0, 3), 100, 100, enter))
	third.save()
	assert.Equal(t, 1, entered(open(), "2026-11-23"))
	assert.FileExists(t, path+".damaged")
}

// What cannot be written waits in memory.
func TestNoRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	r := &Recorder{Directory: dir, Days: 3, Logger: slog.New(slog.DiscardHandler)}
	r.Frame(shown("belt", noon, 100, 100, zone.Event{Kind: zone.Enter, Object: object(0)}))
	r.save()
	require.NoError(t, os.Remove(dir))
	r.save()
	day, _, err := (&Recorder{Directory: dir}).Day("belt", "")
	require.NoError(t, err)
	assert.Equal(t, 1, day.hour(12).Zones["yard"].Entered)
}

func TestNoAllocations(t *testing.T) {
	r := &Recorder{}
	frame := shown("belt", noon, 100, 100, zone.Event{Kind: zone.Enter, Object: object(0)}, zone.Event{Kind: zone.New, Object: object(0)})
	r.Frame(frame)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		frame.Time = frame.Time.Add(10 * time.Millisecond)
		r.Frame(frame)
	}))
}

func FuzzParse(f *testing.F) {
	day := newDay("belt", "2026-11-20")
	entry(day.hour(5).Zones, "yard").Dwell = 5
	text, err := json.Marshal(day)
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"hours":{"5":null,"99":{"zones":{"a":null}}},"heat":[1,2]}`))
	f.Add([]byte(`{"hours":{"5":{"zones":{"a":{"dwell_s":1e308}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := parse(data)
		if err != nil {
			return
		}
		found.add(found)
		_, err = json.Marshal(found)
		require.NoError(t, err)
	})
}
