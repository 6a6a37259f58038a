package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
)

// Events are the stored events and recordings; *store.Store implements it.
type Events interface {
	// Events returns the events that match, newest first, and the cursor of the next page, empty for the last one.
	Events(ctx context.Context, f store.Filter) (events []store.Event, next string, err error)
	// Event returns an event, or fs.ErrNotExist. The others open its files, or return fs.ErrNotExist.
	Event(ctx context.Context, id string) (*store.Event, error)
	FrameFile(e *store.Event) (*os.File, error)
	CropFile(e *store.Event) (*os.File, error)
	ClipFile(ctx context.Context, clip string) (*os.File, error)
	// Recordings returns the files of continuous recordings that show some of the filter's time, newest first, and the cursor of the next
	// page. Spans returns the stretches of time in which there are any, newest first.
	Recordings(ctx context.Context, f store.Filter) (files []store.Recording, next string, err error)
	Spans(ctx context.Context, f store.Filter) ([]store.Span, error)
}

// defaultEvents is the number of events in a response without a limit parameter.
const defaultEvents = 100

// filterParameters are the query parameters that select events.
var filterParameters = []string{"after", "before", "camera", "label", "zone", "attribute"}

// eventPages serves the stored events and recordings.
type eventPages struct {
	events Events // nil if none are stored
	logger *slog.Logger
	limit  time.Duration // for each part of a file
}

// eventRoutes registers the routes of openapi.json.
func (p *eventPages) eventRoutes(handle func(pattern string, handler func(http.ResponseWriter, *http.Request))) {
	handle("GET /api/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		http.ServeFileFS(w, r, openAPI, "openapi.json")
	})
	list := append([]string{"limit", "cursor"}, filterParameters...)
	handle("GET /api/events", withParameters(p.serveEvents, list...))
	handle("GET /api/events.jsonl", withParameters(p.exportLines, filterParameters...))
	handle("GET /api/events.csv", withParameters(p.exportCSV, filterParameters...))
	handle("GET /api/events.coco.json", withParameters(p.exportCOCO, filterParameters...))
	handle("GET /api/events/{id}", withParameters(p.serveEvent))
	frame := p.eventFile("image/jpeg", func(_ context.Context, e *store.Event) (*os.File, error) { return p.events.FrameFile(e) })
	crop := p.eventFile("image/jpeg", func(_ context.Context, e *store.Event) (*os.File, error) { return p.events.CropFile(e) })
	clip := p.eventFile("", func(ctx context.Context, e *store.Event) (*os.File, error) {
		if e.Clip == "" {
			return nil, fs.ErrNotExist
		}
		return p.events.ClipFile(ctx, e.Clip)
	})
	handle("GET /api/events/{id}/frame", frame)
	handle("GET /api/events/{id}/crop", crop)
	handle("GET /api/events/{id}/clip", clip)
	// Paths of Frigate's API, for its cards and notifiers.
	handle("GET /api/events/{id}/snapshot.jpg", frame)
	handle("GET /api/events/{id}/thumbnail.jpg", crop)
	handle("GET /api/events/{id}/clip.mp4", clip)
	handle("GET /api/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, frigateVersion) })
}

// frigateVersion is what notifiers ask for at their start: the last one before reviews, which are not served.
const frigateVersion = "0.13.2"

// event is an event in responses. URLs are paths on this server; those of what does not exist are omitted.
type event struct {
	ID         string                     `json:"id"`
	Camera     string                     `json:"camera"`
	Label      string                     `json:"label"`
	Time       time.Time                  `json:"time"`         // of the first detection
	End        time.Time                  `json:"end,omitzero"` // of the last detection; omitted while the object is there
	Score      float64                    `json:"score"`
	Box        [4]float64                 `json:"box"`
	Width      int                        `json:"width"`
	Height     int                        `json:"height"`
	Zones      []string                   `json:"zones,omitempty"`
	Lines      []store.Crossing           `json:"lines,omitempty"`
	Attributes map[string]store.Attribute `json:"attributes,omitempty"`
	Verified   *bool                      `json:"verified,omitempty"` // by a verification service; omitted if none was asked
	Length     float64                    `json:"length"`
	Distance   float64                    `json:"distance_m,omitempty"`
	Path       [][2]int                   `json:"path,omitempty"`
	Frame      string                     `json:"frame,omitempty"`
	Crop       string                     `json:"crop,omitempty"`
	Clip       string                     `json:"clip,omitempty"`
	ClipStart  time.Time                  `json:"clip_start,omitzero"` // to the second
}

func eventOf(e *store.Event) event {
	to := event{
		ID: e.ID, Camera: e.Camera, Label: e.Label, Time: e.Start, Score: e.Score, Box: e.Box, Width: e.Width, Height: e.Height, Zones: e.Zones,
		Lines: e.Lines, Attributes: e.Attributes, Verified: e.Verified, Length: e.Length, Distance: e.Distance, Path: e.Path,
	}
	if e.Ended {
		to.End = e.Last
	}
	to.Frame, to.Crop, to.Clip = EventPaths(e)
	to.ClipStart = e.ClipStart
	return to
}

// EventPaths returns the paths at which the frame, the crop and the clip of an event are served; empty for what it does not have.
func EventPaths(e *store.Event) (frame, crop, clip string) {
	path := "/api/events/" + e.ID
	if e.Frame > 0 {
		frame = path + "/frame"
	}
	if e.Crop > 0 {
		crop = path + "/crop"
	}
	if e.Clip != "" {
		clip = path + "/clip"
	}
	return frame, crop, clip
}

// readFilter returns the filter of a request's parameters.
func readFilter(r *http.Request) (f store.Filter, err error) {
	f = store.Filter{
		Camera: r.FormValue("camera"), Label: r.FormValue("label"), Zone: r.FormValue("zone"), Attribute: r.FormValue("attribute"),
		Cursor: r.FormValue("cursor"), Limit: defaultEvents,
	}
	if text := r.FormValue("limit"); text != "" {
		f.Limit, err = strconv.Atoi(text)
		if err != nil || f.Limit < 1 || f.Limit > store.MaxPage {
			return f, fmt.Errorf("limit must be 1 to %d", store.MaxPage)
		}
	}
	for _, bound := range []struct {
		name string
		to   *time.Time
	}{{"after", &f.After}, {"before", &f.Before}} {
		text := r.FormValue(bound.name)
		if text == "" {
			continue
		}
		if *bound.to, err = time.Parse(time.RFC3339, text); err != nil {
			return f, fmt.Errorf("%s must be a time as in 2026-11-25T18:00:00Z", bound.name)
		}
	}
	return f, nil
}

var errNoEvents = errors.New("events are not stored: events.directory is off")

// available reports whether events are stored, or writes an error response.
func (p *eventPages) available(w http.ResponseWriter) bool {
	if p.events == nil {
		writeError(w, http.StatusNotFound, errNoEvents)
		return false
	}
	return true
}

// writeStoreError writes the response for an error of the store.
func (p *eventPages) writeStoreError(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		writeError(w, http.StatusNotFound, errors.New("no such event"))
	case errors.Is(err, store.ErrCursor):
		writeError(w, http.StatusBadRequest, err)
	default:
		p.logger.Warn("events not read for the web page", "error", err)
		writeError(w, http.StatusServiceUnavailable, errors.New("the event store cannot be read; see the log"))
	}
}

// query reads the filter of a request and reserves memory for a response of items, each of so many bytes: the filter's Limit, or the given
// number if it is not 0. It reports false after it has responded with an error.
func (p *eventPages) query(w http.ResponseWriter, r *http.Request, bytes int64, items int) (f store.Filter, ok bool) {
	f, err := readFilter(r)
	if err != nil {
		writeError(w, http.StatusBadRequest, err)
		return f, false
	}
	if !p.available(w) {
		return f, false
	}
	if err := reserve(w, int64(cmp.Or(items, f.Limit))*bytes); err != nil {
		writeOverLimit(w, err)
		return f, false
	}
	return f, true
}

// serveEvents responds with a page of events, newest first.
func (p *eventPages) serveEvents(w http.ResponseWriter, r *http.Request) {
	f, ok := p.query(w, r, eventMemory, 0)
	if !ok {
		return
	}
	found, next, err := p.events.Events(r.Context(), f)
	if err != nil {
		p.writeStoreError(w, err)
		return
	}
	page := struct {
		Events []event `json:"events"`
		Next   string  `json:"next,omitempty"`
	}{make([]event, 0, len(found)), next}
	for i := range found {
		page.Events = append(page.Events, eventOf(&found[i]))
	}
	writeJSON(w, http.StatusOK, page)
}

func (p *eventPages) serveEvent(w http.ResponseWriter, r *http.Request) {
	if !p.available(w) {
		return
	}
	e, err := p.events.Event(r.Context(), r.PathValue("id"))
	if err != nil {
		p.writeStoreError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, eventOf(e))
}

// eventFile serves a file of an event, with ranges. An empty type is that of the file's name.
func (p *eventPages) eventFile(contentType string, open func(context.Context, *store.Event) (*os.File, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !p.available(w) {
			return
		}
		e, err := p.events.Event(r.Context(), r.PathValue("id"))
		if err != nil {
			p.writeStoreError(w, err)
			return
		}
		file, err := open(r.Context(), e)
		p.sendFile(w, r, contentType, file, err)
	}
}

// sendFile serves a file that the store has opened, or responds with the error of that. It closes the file.
func (p *eventPages) sendFile(w http.ResponseWriter, r *http.Request, contentType string, file *os.File, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		writeError(w, http.StatusNotFound, errors.New("there is none, or it has been removed to free space"))
		return
	}
	var info fs.FileInfo
	if err == nil {
		defer file.Close()
		info, err = file.Stat()
	}
	if err != nil {
		p.writeStoreError(w, err)
		return
	}
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
	w.Header().Set("Cache-Control", "private, max-age=10")
	http.ServeContent(p.slowWriter(w), r, filepath.Base(file.Name()), info.ModTime(), file)
}

// slowWriter lets a response take as long as the client reads: the timeout is for each part.
func (p *eventPages) slowWriter(w http.ResponseWriter) *slowWriter {
	return &slowWriter{ResponseWriter: w, control: http.NewResponseController(w), limit: p.limit}
}

type slowWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	limit   time.Duration
}

// Unwrap is for http.ResponseController.
func (w *slowWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write implements io.Writer.
func (w *slowWriter) Write(data []byte) (int, error) {
	w.extend()
	return w.ResponseWriter.Write(data)
}

// extend begins the timeout again.
func (w *slowWriter) extend() {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.limit)) // a recorder in tests has none
}

var _ io.Writer = (*slowWriter)(nil)
