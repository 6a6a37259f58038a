package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live/livetest"
	"github.com/edge-infer/edge-infer/engine"
)

// manyEvents are stored events with frames, in pages.
type manyEvents struct {
	*store.Store
	pages int
}

func (m *manyEvents) Events(_ context.Context, f store.Filter) (events []store.Event, next string, err error) {
	page, _ := strconv.Atoi(f.Cursor)
	for i := range f.Limit {
		e := storedEvent(page*f.Limit+i, "cam0", "bolt")
		e.Frame, e.FrameWidth, e.FrameHeight = 1000, 64, 48
		events = append(events, *e)
	}
	if page+1 < m.pages {
		next = strconv.Itoa(page + 1)
	}
	return events, next, nil
}

// TestMemoryOfClientsIsBounded: what is requested beyond the limit is refused with the setting that raises it, and all is given back.
func TestMemoryOfClientsIsBounded(t *testing.T) {
	server := &Server{Events: &manyEvents{pages: 5}, MaxBytes: 3 << 20}
	serve(t, server, frames("cam0"))
	const reason = "too much memory is in use"
	const remedy = "of 3145728 (web.memory_mb raises the limit)"

	code, text, header := ask(t, "GET", server.URL()+"api/events.coco.json", nil)
	require.Equal(t, http.StatusServiceUnavailable, code, "%.200s", text)
	require.Contains(t, text, reason)
	require.Contains(t, text, remedy+"; request fewer events with after and before")
	require.Equal(t, "1", header.Get("Retry-After"))
	code, text, _ = ask(t, "GET", server.URL()+"api/events.jsonl", nil)
	require.Equal(t, http.StatusOK, code, "lines are not kept")
	require.Equal(t, 5*store.MaxPage, strings.Count(text, "\n"))
	code, _, _ = ask(t, "GET", server.URL()+"api/events?limit=1000", nil)
	require.Equal(t, http.StatusOK, code)

	require.NoError(t, server.memory.Reserve(3<<20-requestMemory-1)) // another client's
	for _, path := range []string{"api/status", "api/events?limit=1"} {
		code, text, _ = ask(t, "GET", server.URL()+path, nil)
		require.Equal(t, http.StatusServiceUnavailable, code, "%s: %s", path, text)
		require.Contains(t, text, remedy, path)
	}
	for _, path := range []string{"healthz", "metrics"} {
		code, _, _ = ask(t, "GET", server.URL()+path, nil)
		require.Equal(t, http.StatusOK, code, path)
	}
	server.memory.Release(3<<20 - requestMemory - 1)
	_, text, _ = ask(t, "GET", server.URL()+"metrics", nil)
	require.Contains(t, text, "edge_infer_web_bytes_in_flight 0\n")
	require.Contains(t, text, fmt.Sprintf("edge_infer_web_bytes_in_flight_limit %g\n", float64(3<<20)))
	require.Contains(t, text, "edge_infer_web_over_limit_total 3\n")
}

// TestMemoryOfViewersIsBounded: messages and images for viewers that do not read are dropped at the limit, and given back when they leave.
func TestMemoryOfViewersIsBounded(t *testing.T) {
	const images = 500 << 10 // about the size of one
	server := &Server{FrameRate: 30, MaxBytes: 3*requestMemory + images*3/2, limits: defaultLimits()}
	server.limits.write = time.Second
	serve(t, server, frames("cam0"))
	viewers := stuck(t, server)
	feed(t, server, livetest.Noise(engine.BGR, 960, 720, 3*960), 5*time.Millisecond)
	require.Eventually(t, func() bool {
		memory := server.memory.Stats()
		require.LessOrEqual(t, memory.Used, memory.Max)
		return memory.Refused > 0
	}, testPatience, time.Millisecond)
	require.Eventually(t, func() bool { return viewers() <= 1 }, 4*testPatience, 10*time.Millisecond, "the one with small messages stays")
}
