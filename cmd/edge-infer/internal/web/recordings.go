package web

import (
	"net/http"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
)

// recordingRoutes registers the routes of continuous recordings in openapi.json.
func (p *eventPages) recordingRoutes(handle func(pattern string, handler func(http.ResponseWriter, *http.Request))) {
	handle("GET /api/recordings", withParameters(p.serveRecordings, "limit", "cursor", "after", "before", "camera"))
	handle("GET /api/recordings/spans", withParameters(p.serveSpans, "after", "before", "camera"))
	handle("GET /api/recordings/{recording}/video", func(w http.ResponseWriter, r *http.Request) {
		if !p.available(w) {
			return
		}
		file, err := p.events.ClipFile(r.Context(), r.PathValue("recording"))
		p.sendFile(w, r, "", file, err)
	})
}

// recording is a file of a continuous recording in responses.
type recording struct {
	ID     string    `json:"id"`
	Camera string    `json:"camera"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end,omitzero"` // omitted while it is recorded
	Codec  string    `json:"codec"`
	Bytes  int64     `json:"bytes"` // 0 while it is recorded
	Video  string    `json:"video"` // path on this server
}

// span is a stretch of continuous recordings in responses.
type span struct {
	Camera string    `json:"camera"`
	Start  time.Time `json:"start"`
	End    time.Time `json:"end,omitzero"` // omitted while it goes on
}

// serveRecordings responds with a page of files, newest first.
func (p *eventPages) serveRecordings(w http.ResponseWriter, r *http.Request) {
	f, ok := p.query(w, r, eventMemory, 0)
	if !ok {
		return
	}
	found, next, err := p.events.Recordings(r.Context(), f)
	if err != nil {
		p.writeStoreError(w, err)
		return
	}
	page := struct {
		Recordings []recording `json:"recordings"`
		Next       string      `json:"next,omitempty"`
	}{make([]recording, 0, len(found)), next}
	for i := range found {
		f := &found[i]
		page.Recordings = append(page.Recordings, recording{
			ID: f.ID, Camera: f.Camera, Start: f.Start, End: f.End, Codec: f.Codec, Bytes: f.Bytes, Video: "/api/recordings/" + f.ID + "/video",
		})
	}
	writeJSON(w, http.StatusOK, page)
}

// serveSpans responds with the stretches of time that are recorded.
func (p *eventPages) serveSpans(w http.ResponseWriter, r *http.Request) {
	f, ok := p.query(w, r, spanMemory, store.MaxSpans)
	if !ok {
		return
	}
	found, err := p.events.Spans(r.Context(), f)
	if err != nil {
		p.writeStoreError(w, err)
		return
	}
	spans := make([]span, 0, len(found))
	for i := range found {
		spans = append(spans, span(found[i]))
	}
	writeJSON(w, http.StatusOK, map[string]any{"spans": spans})
}
