package store

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/crashtest"
)

// TestCrashChild is the process that TestKillsLoseNoPublishedEvent kills. It prints the number of an event where the daemon would publish
// it.
func TestCrashChild(t *testing.T) {
	directory := os.Getenv("EDGE_INFER_CRASH_EVENTS")
	if directory == "" {
		t.Skip("runs only as a child of TestKillsLoseNoPublishedEvent")
	}
	first, err := strconv.Atoi(os.Getenv("EDGE_INFER_CRASH_FIRST"))
	require.NoError(t, err)
	s := &Store{Directory: directory, Logger: slog.New(slog.DiscardHandler)}
	s.Open()
	for n := first; ; n++ {
		e := event(n)
		e.Ended = n%3 == 0
		s.Add(e)
		if n%4 == 0 {
			s.AddSnapshot(snapshot(e))
		}
		if n%5 == 0 {
			continue // several in one transaction
		}
		s.Settle()
		if !s.queue.late.Load() {
			fmt.Println("published", n)
			continue
		}
		for s.queue.len() > 0 { // on a busy machine nothing would be stored in time otherwise
			time.Sleep(time.Millisecond)
		}
	}
}

// TestKillsLoseNoPublishedEvent kills a storing process at random moments. Every event that was published is there afterwards, and images
// and rows belong together.
func TestKillsLoseNoPublishedEvent(t *testing.T) {
	rounds := 15
	if text := os.Getenv("EDGE_INFER_KILLS"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	directory := t.TempDir()
	var published []uint64
	for round := range rounds {
		published = append(published, crashtest.Kill(t, "TestCrashChild", "published", 60*time.Millisecond, "EDGE_INFER_CRASH_EVENTS="+directory,
			fmt.Sprintf("EDGE_INFER_CRASH_FIRST=%d", round*100_000))...)
	}
	require.NotEmpty(t, published)
	s := opened(t, directory, io.Discard)
	require.Empty(t, s.Stats().Error)
	stored := map[string]bool{}
	for cursor := ""; ; {
		page, next, err := s.Events(context.Background(), Filter{Limit: MaxPage, Cursor: cursor})
		require.NoError(t, err)
		for i := range page {
			e := &page[i]
			stored[e.ID] = true
			require.True(t, e.Ended)
			if e.Frame > 0 {
				file, err := s.FrameFile(e)
				require.NoError(t, err)
				require.NoError(t, file.Close())
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	for _, n := range published {
		require.True(t, stored[event(int(n)).ID], "event %d was published and is not stored", n)
	}
	var integrity string
	require.NoError(t, s.readers.QueryRow("PRAGMA integrity_check").Scan(&integrity))
	require.Equal(t, "ok", integrity)
	t.Logf("%d kills, %d events published, %d stored", rounds, len(published), len(stored))
}
