package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// defaultEvents is the number of events in a response without a limit parameter.
const defaultEvents = 100

// maxTextBytes bounds the search text in bytes.
const maxTextBytes = 200

// serveEvents responds with the newest events, filtered by camera, type and text.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	limit := defaultEvents
	if text := r.FormValue("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > live.MaxEvents {
			http.Error(w, fmt.Sprintf("limit must be 1 to %d", live.MaxEvents), http.StatusBadRequest)
			return
		}
	}
	text := r.FormValue("text")
	if len(text) > maxTextBytes {
		http.Error(w, fmt.Sprintf("text must be at most %d bytes", maxTextBytes), http.StatusBadRequest)
		return
	}
	kind := r.FormValue("type")
	if kind != "" && !slices.Contains(live.EventTypes(), zone.Kind(kind)) {
		http.Error(w, fmt.Sprintf("type must be one of %v", live.EventTypes()), http.StatusBadRequest)
		return
	}
	writeJSON(w, http.StatusOK, s.feed.Events(live.Query{Camera: r.FormValue("camera"), Type: kind, Text: text, Limit: limit}))
}

// snapshotPollInterval is the time between two attempts to read a snapshot that is being encoded.
const snapshotPollInterval = 50 * time.Millisecond

// snapshot returns the best snapshot of an object as JPEG. After a recent event the image may still be with the encoder; snapshot waits
// for it.
func (s *Server) snapshot(ctx context.Context, camera, id string) ([]byte, error) {
	until := s.feed.LastEvent(camera, id).Add(s.limits.snapshot)
	for {
		jpeg, err := s.Snapshot(camera, id)
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(until) {
			return jpeg, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(snapshotPollInterval):
		}
	}
}

// serveSnapshot responds with the best snapshot of an object.
func (s *Server) serveSnapshot(w http.ResponseWriter, r *http.Request) {
	if s.Snapshot == nil {
		http.Error(w, "snapshots are disabled", http.StatusNotFound)
		return
	}
	jpeg, err := s.snapshot(r.Context(), r.PathValue("camera"), r.PathValue("id"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "no snapshot", http.StatusNotFound)
	case err != nil:
		s.Logger.Warn("snapshot not read for the web page", "error", err)
		http.Error(w, "the snapshot cannot be read", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "image/jpeg")
		w.Header().Set("Cache-Control", "private, max-age=10")
		_, _ = w.Write(jpeg) // the client may be gone
	}
}
