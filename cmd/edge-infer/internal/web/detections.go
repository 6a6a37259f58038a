package web

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"
)

// serveDetections streams server-sent events: frame with the detections of each frame, event when something happened.
func (s *Server) serveDetections(w http.ResponseWriter, r *http.Request) {
	_, leave, err := s.join(true, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer leave()
	c := s.observer.join()
	defer s.observer.leave(c)
	w.Header().Set("Content-Type", "text/event-stream")
	out := newStreamWriter(w, s.limits.write)
	if _, err := io.WriteString(out, "retry: 1000\n\n"); err != nil || out.flush() != nil {
		return
	}
	for {
		var message []byte
		select {
		case <-r.Context().Done():
			return
		case message = <-c.messages:
		case <-time.After(s.limits.heartbeat): // a dead client is noticed by writing to it
			message = []byte(":\n\n")
		}
		if _, err := out.Write(message); err != nil {
			return
		}
		if len(c.messages) == 0 && out.flush() != nil {
			return
		}
	}
}

// listed is how many events a request gets when it does not say.
const listed = 100

// serveEvents lists what happened, newest first.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	limit := listed
	if text := r.FormValue("limit"); text != "" {
		var err error
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > remembered {
			http.Error(w, fmt.Sprintf("limit must be 1 to %d", remembered), http.StatusBadRequest)
			return
		}
	}
	writeJSON(w, http.StatusOK, s.observer.latest(r.FormValue("camera"), limit))
}

// serveSnapshot is the best view of an object.
func (s *Server) serveSnapshot(w http.ResponseWriter, r *http.Request) {
	if s.Snapshot == nil {
		http.Error(w, "snapshots are not kept", http.StatusNotFound)
		return
	}
	jpeg, err := s.Snapshot(r.PathValue("camera"), r.PathValue("id"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, "no snapshot", http.StatusNotFound)
	case err != nil:
		s.Logger.Warn("snapshot for the web page", "error", err)
		http.Error(w, "the snapshot cannot be read", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "image/jpeg")
		w.Header().Set("Cache-Control", "private, max-age=10")
		_, _ = w.Write(jpeg) // the client may be gone
	}
}
