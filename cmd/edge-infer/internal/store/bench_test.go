package store

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// benchmarkEvent is an event of one of 16 cameras and 80 labels, with the parts that most have.
func benchmarkEvent(i int) *Event {
	start := began.Add(time.Duration(i) * 2 * time.Second)
	e := &Event{
		ID: fmt.Sprintf("%d.000000-%d", start.Unix(), i), Camera: fmt.Sprintf("camera-%d", i%16), Label: fmt.Sprintf("label-%d",
			uint32(i)*2654435761>>16%80),
		Start: start, Last: start.Add(5 * time.Second), Ended: true,
	}
	e.Score, e.Box, e.Width, e.Height = 0.87, [4]float64{100.5, 200.5, 300.5, 400.5}, 1920, 1080
	e.Length = 321.5
	if i%2 == 0 {
		e.Zones = []string{fmt.Sprintf("zone-%d", i%6)}
	}
	if i%4 == 0 {
		e.Attributes = map[string]Attribute{"colour": {[]string{"red", "blue"}[i/4%2], 0.9}}
	}
	for p := range 12 {
		e.Path = append(e.Path, [2]int{100 + 30*p, 400 + 5*p})
	}
	return e
}

func openBenchmark(b *testing.B, directory string) *Store {
	s := &Store{Directory: directory, MaxBytes: 8 << 30, Days: 3660, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	s.Open()
	require.Empty(b, s.Stats().Error)
	return s
}

// BenchmarkAdd is the cost of an event for the frame loop.
func BenchmarkAdd(b *testing.B) {
	s := openBenchmark(b, b.TempDir())
	defer s.Close()
	e := benchmarkEvent(0)
	b.ReportAllocs()
	for i := range b.N {
		if i%maxQueued == 0 { // none is dropped
			b.StopTimer()
			require.NoError(b, s.change(context.Background(), func() error { return nil }))
			b.StartTimer()
		}
		s.Add(e)
	}
	b.StopTimer()
	require.Zero(b, s.Stats().Dropped)
}

// BenchmarkStore is the cost of an event for the writer: alone in a transaction, which is synced, and with others.
func BenchmarkStore(b *testing.B) {
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			s := openBenchmark(b, b.TempDir())
			defer s.Close()
			i := 0
			for b.Loop() {
				e := benchmarkEvent(i)
				i++
				s.Add(e)
				if i%batch == 0 {
					require.NoError(b, s.change(context.Background(), func() error { return nil }))
				}
			}
			require.Zero(b, s.Stats().Dropped)
		})
	}
}

// BenchmarkMillion reports size, start and queries of 1,000,000 events. Run it with -benchtime 1x.
func BenchmarkMillion(b *testing.B) {
	const count = 1_000_000
	directory := b.TempDir()
	s := openBenchmark(b, directory)
	begun := time.Now()
	for i := range count {
		s.Add(benchmarkEvent(i))
		if i%1000 == 999 {
			require.NoError(b, s.change(context.Background(), func() error { return nil }))
		}
	}
	b.Logf("%.1f µs per event in transactions of 1000", float64(time.Since(begun).Microseconds())/count)
	require.Zero(b, s.Stats().Dropped)
	require.NoError(b, s.Close())
	info, err := os.Stat(filepath.Join(directory, databaseName))
	require.NoError(b, err)
	b.Logf("%.0f MB", float64(info.Size())/1e6)
	begun = time.Now()
	s = openBenchmark(b, directory)
	defer s.Close()
	b.Logf("opened in %v", time.Since(begun))
	random := rand.New(rand.NewPCG(1, 2))
	for _, query := range []struct {
		name   string
		filter func() Filter
	}{
		{"newest", func() Filter { return Filter{} }},
		{"camera", func() Filter { return Filter{Camera: fmt.Sprintf("camera-%d", random.IntN(16))} }},
		{"label", func() Filter { return Filter{Label: fmt.Sprintf("label-%d", random.IntN(80))} }},
		{"camera+label", func() Filter {
			return Filter{Camera: fmt.Sprintf("camera-%d", random.IntN(16)), Label: fmt.Sprintf("label-%d", random.IntN(80))}
		}},
		{"zone", func() Filter { return Filter{Zone: fmt.Sprintf("zone-%d", 2*random.IntN(3))} }},
		{"zone+camera", func() Filter {
			return Filter{Zone: fmt.Sprintf("zone-%d", 2*random.IntN(3)), Camera: fmt.Sprintf("camera-%d", random.IntN(16))}
		}},
		{"attribute+day", func() Filter {
			after := began.Add(time.Duration(random.IntN(2*count)) * time.Second)
			return Filter{Attribute: "colour=red", After: after, Before: after.AddDate(0, 0, 1)}
		}},
	} {
		var took []time.Duration
		for range 300 {
			f := query.filter()
			f.Limit = 100
			at := time.Now()
			_, _, err := s.Events(context.Background(), f)
			took = append(took, time.Since(at))
			require.NoError(b, err)
		}
		slices.Sort(took)
		b.Logf("%-14s p50 %v p99 %v", query.name, took[len(took)/2], took[len(took)*99/100])
	}
	for b.Loop() {
		_, _, err := s.Events(context.Background(), Filter{Limit: 100})
		require.NoError(b, err)
	}
}
