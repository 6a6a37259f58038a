package store

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/history"
)

// TestCountsPerMinute: they add up over saves and restarts, by the hours of the local calendar, and go with their age.
func TestCountsPerMinute(t *testing.T) {
	directory := t.TempDir()
	s := opened(t, directory, io.Discard)
	noon := time.Date(2026, 11, 20, 12, 30, 0, 0, time.Local)
	counts := func() *history.Counts {
		return &history.Counts{
			Objects: map[string]int{"bolt": 3, "nut": 0}, Zones: map[string]*history.Zone{"yard": {Entered: 2, Visits: 1, Dwell: 7.5}},
			Lines: map[string]*history.Line{"gate": {In: 4, Out: 1}}, Way: history.Way{Objects: 2, Distance: 12.5, Time: 8},
		}
	}
	heat := new(history.Heat)
	heat[5] = 1.5
	day := history.DayOf(noon)
	add := func(at time.Time) {
		minutes := []history.Minute{{Camera: "belt", Minute: at.Unix() / 60, Counts: counts()}}
		require.NoError(t, s.AddCounts(t.Context(), minutes, []history.DayHeat{{Camera: "belt", Day: history.DayOf(at), Heat: heat}}))
	}
	add(noon)
	add(noon)
	require.NoError(t, s.Close())
	s = opened(t, directory, io.Discard)
	add(noon.Add(time.Minute))
	add(noon.Add(time.Hour))
	add(noon.AddDate(0, 0, 1))
	found, days, err := s.Day(t.Context(), "belt", day)
	require.NoError(t, err)
	require.Equal(t, []string{"2026-11-20", "2026-11-21"}, days)
	want := history.NewCounts()
	for range 3 {
		want.Add(counts())
	}
	delete(want.Objects, "nut")
	require.Equal(t, want, found.Hours[12])
	one := counts()
	delete(one.Objects, "nut")
	require.Equal(t, one, found.Hours[13])
	require.Len(t, found.Hours, 2)
	require.InDelta(t, 6, found.Heat[5], 1e-6)
	for _, unknown := range [][2]string{{"belt", "2026-01-01"}, {"belt", "never"}, {"none", day}} {
		found, _, err := s.Day(t.Context(), unknown[0], unknown[1])
		require.NoError(t, err)
		require.Empty(t, found.Hours)
	}
	prune(t, s, func() { require.NoError(t, s.writer.prune(noon.AddDate(0, 0, s.Days).Add(12*time.Hour), true)) })
	_, days, err = s.Day(t.Context(), "belt", day)
	require.NoError(t, err)
	require.Equal(t, []string{"2026-11-21"}, days)
	var minutes int
	require.NoError(t, s.readers.QueryRow("SELECT count(DISTINCT minute) FROM counts").Scan(&minutes))
	require.Equal(t, 1, minutes)
}
