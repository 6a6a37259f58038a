package web

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
)

// openStore returns an empty event store with a directory of clips.
func openStore(t *testing.T) *store.Store {
	s := &store.Store{Directory: t.TempDir(), ClipDirectory: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	s.Open()
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// stored waits until everything handed over is stored.
func stored(t *testing.T, s *store.Store) {
	require.Eventually(t, func() bool { return s.Stats().Queued == 0 }, testPatience, time.Millisecond)
}

var firstStart = time.Date(2026, 11, 25, 12, 0, 0, 500_000_000, time.UTC)

// storedEvent is an event with a number, a second after the one before.
func storedEvent(i int, camera, label string) *store.Event {
	start := firstStart.Add(time.Duration(i) * time.Second)
	e := &store.Event{
		ID: fmt.Sprintf("%d.500000-%d", start.Unix(), i), Camera: camera, Label: label, Start: start, Last: start.Add(3 * time.Second),
		Ended: true,
	}
	e.Score, e.Box, e.Width, e.Height = 0.5, [4]float64{10, 20, 30, 60}, 128, 96
	e.Zones, e.Lines = []string{"inspection"}, []store.Crossing{{Line: "gate", Direction: "in"}}
	e.Attributes = map[string]store.Attribute{"colour": {Value: "red", Score: 0.9}}
	e.Length, e.Path = 12.5, [][2]int{{20, 60}, {30, 60}}
	return e
}

func addImages(t *testing.T, s *store.Store, e *store.Event) {
	encoded := func(width, height int) []byte {
		var out bytes.Buffer
		require.NoError(t, jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, width, height)), nil))
		return out.Bytes()
	}
	stored(t, s)
	s.AddSnapshot(&store.Snapshot{Camera: e.Camera, ID: e.ID, Frame: encoded(64, 48), Crop: encoded(20, 40), Width: 64, Height: 48})
	stored(t, s)
}

func addClip(t *testing.T, s *store.Store, camera, event, content string) {
	clip := &record.Clip{ID: "clip-" + event, Camera: camera, Events: []string{event}, Path: "clip.mp4", State: record.Closed}
	require.NoError(t, os.WriteFile(filepath.Join(s.ClipDirectory, clip.Path), []byte(content), 0o600))
	require.NoError(t, s.OpenClip(context.Background(), clip))
}

// document is the served OpenAPI document.
type document struct {
	Paths map[string]map[string]struct {
		Parameters []struct{ Name, In string }
		Responses  map[string]struct {
			Content map[string]struct {
				Schema struct {
					Ref string `json:"$ref"`
				}
			}
		}
	}
}

// TestTheDocumentIsWhatIsServed: the same paths, the same parameters, and responses of the described form.
func TestTheDocumentIsWhatIsServed(t *testing.T) {
	s := openStore(t)
	server := &Server{Events: s}
	serve(t, server, frames("cam0"))
	code, text, header := ask(t, "GET", server.URL()+"api/openapi.json", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "application/json", header.Get("Content-Type"))
	var doc document
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("openapi.json", value))

	e := storedEvent(0, "cam0", "bolt")
	s.Add(e)
	addImages(t, s, e)
	addClip(t, s, e.Camera, e.ID, "video")
	open := storedEvent(1, "cam0", "nut")
	open.Ended = false
	s.Add(open)
	stored(t, s)

	recording := addRecording(t, s, "cam0", firstStart, 0, []byte("video"))
	addRecording(t, s, "cam0", firstStart.Add(-time.Hour), time.Minute, nil)
	var served []string
	list := func(pattern string, _ func(http.ResponseWriter, *http.Request)) { served = append(served, pattern) }
	pages := &eventPages{}
	pages.eventRoutes(list)
	pages.recordingRoutes(list)
	var described []string
	for path, methods := range doc.Paths {
		for method := range methods {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	require.ElementsMatch(t, served, described)
	for path, methods := range doc.Paths {
		operation := methods["get"]
		address := server.URL() + strings.TrimPrefix(strings.NewReplacer("{id}", e.ID, "{recording}", recording).Replace(path), "/")
		code, text, header := ask(t, "GET", address, nil)
		require.Equal(t, http.StatusOK, code, "%s: %s", path, text)
		kind, _, _ := strings.Cut(header.Get("Content-Type"), ";")
		content, known := operation.Responses["200"].Content[kind]
		require.True(t, known, "%s is %s", path, kind)
		if content.Schema.Ref != "" {
			schema, err := compiler.Compile("openapi.json" + content.Schema.Ref)
			require.NoError(t, err)
			for line := range strings.Lines(text) {
				value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
				require.NoError(t, err)
				require.NoError(t, schema.Validate(value), "%s: %s", path, line)
			}
		}
		if operation.Responses["400"].Content == nil {
			continue
		}
		var parameters []string
		for _, p := range operation.Parameters {
			if p.In == "query" {
				parameters = append(parameters, p.Name)
			}
		}
		code, text, _ = ask(t, "GET", address+"?nonsense=1", nil)
		require.Equal(t, http.StatusBadRequest, code, path)
		want := "takes " + strings.Join(parameters, ", ")
		if len(parameters) == 0 {
			want = "takes none"
		}
		require.Contains(t, text, want, path)
	}
}

func TestEventList(t *testing.T) {
	s := openStore(t)
	server := &Server{Events: s}
	serve(t, server, frames("cam0"))
	for i := range 5 {
		s.Add(storedEvent(i, []string{"yard", "gate"}[i%2], "car"))
	}
	stored(t, s)
	type page struct {
		Events []event
		Next   string
	}
	list := func(query string) (p page) {
		code, text, _ := ask(t, "GET", server.URL()+"api/events"+query, nil)
		require.Equal(t, http.StatusOK, code, text)
		require.NoError(t, json.Unmarshal([]byte(text), &p))
		return p
	}
	numbers := func(p page) (all []string) {
		for i := range p.Events {
			all = append(all, p.Events[i].ID[strings.Index(p.Events[i].ID, "-")+1:])
		}
		return all
	}
	first := list("?limit=2")
	require.Equal(t, []string{"4", "3"}, numbers(first))
	second := list("?limit=2&cursor=" + first.Next)
	require.Equal(t, []string{"2", "1"}, numbers(second))
	last := list("?limit=2&cursor=" + second.Next)
	require.Equal(t, []string{"0"}, numbers(last))
	require.Empty(t, last.Next)
	require.Equal(t, firstStart, last.Events[0].Time)
	require.Empty(t, last.Events[0].Frame)
	require.Empty(t, last.Events[0].Clip)
	for query, want := range map[string][]string{
		"?camera=gate": {"3", "1"}, "?label=car&zone=inspection&attribute=colour%3Dred&camera=yard": {"4", "2", "0"}, "?attribute=size": nil,
		"?after=2026-11-25T13:00:03%2B01:00": {"4", "3"}, "?before=2026-11-25T12:00:02Z": {"1", "0"}, "?camera=": {"4", "3", "2", "1", "0"},
	} {
		require.Equal(t, want, numbers(list(query)), query)
	}
	code, text, _ := ask(t, "GET", server.URL()+"api/events?camera=none", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "{\"events\":[]}\n", text)
	for query, want := range map[string]string{
		"limit=0": "limit must be 1 to 1000", "limit=x": "limit must be 1 to 1000",
		"after=yesterday": "after must be a time as in 2026-11-25T18:00:00Z",
		"cursor=nonsense": "cursor must be the value of next in an earlier response", "type=new": "unknown parameter",
	} {
		code, text, _ := ask(t, "GET", server.URL()+"api/events?"+query, nil)
		require.Equal(t, http.StatusBadRequest, code)
		require.Contains(t, text, want)
	}
}

// TestFilesOfEvents: frame, crop and clip with ranges, under both names.
func TestFilesOfEvents(t *testing.T) {
	s := openStore(t)
	server := &Server{Events: s}
	serve(t, server, frames("cam0"))
	e := storedEvent(0, "cam0", "bolt")
	s.Add(e)
	bare := storedEvent(1, "cam0", "bolt")
	s.Add(bare)
	addImages(t, s, e)
	addClip(t, s, "cam0", e.ID, "0123456789")
	get := func(id, file, ranged string) (*http.Response, string) {
		request, err := http.NewRequest(http.MethodGet, server.URL()+"api/events/"+id+"/"+file, nil)
		require.NoError(t, err)
		if ranged != "" {
			request.Header.Set("Range", ranged)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		return response, string(body)
	}
	for file, size := range map[string]image.Point{
		"frame": {X: 64, Y: 48}, "snapshot.jpg": {X: 64, Y: 48}, "crop": {X: 20, Y: 40}, "thumbnail.jpg": {X: 20, Y: 40},
	} {
		response, body := get(e.ID, file, "")
		require.Equal(t, "image/jpeg", response.Header.Get("Content-Type"))
		config, err := jpeg.DecodeConfig(strings.NewReader(body))
		require.NoError(t, err)
		require.Equal(t, size, image.Pt(config.Width, config.Height))
	}
	for _, file := range []string{"clip", "clip.mp4"} {
		response, body := get(e.ID, file, "bytes=2-4")
		require.Equal(t, http.StatusPartialContent, response.StatusCode)
		require.Equal(t, "234", body)
		require.Equal(t, "bytes 2-4/10", response.Header.Get("Content-Range"))
		require.Equal(t, "video/mp4", response.Header.Get("Content-Type"))
	}
	code, version, _ := ask(t, "GET", server.URL()+"api/version", nil)
	require.Equal(t, http.StatusOK, code)
	require.Regexp(t, `^0\.\d+\.\d+$`, version, "notifiers parse it")
	require.NoError(t, os.Remove(filepath.Join(s.ClipDirectory, "clip.mp4")))
	for _, missing := range []string{e.ID + "/clip", bare.ID + "/frame", bare.ID + "/clip", "unknown/frame", url.PathEscape("../../x") +
		"/frame"} {
		id, file, _ := strings.Cut(missing, "/")
		response, body := get(id, file, "")
		require.Equal(t, http.StatusNotFound, response.StatusCode, missing)
		require.Contains(t, body, `"error"`)
	}
}

func TestExports(t *testing.T) {
	s := openStore(t)
	server := &Server{Events: s}
	serve(t, server, frames("cam0"))
	const count = 2100 // several pages
	for i := range count {
		s.Add(storedEvent(i, "cam0", []string{"bolt", "nut"}[i%2]))
		if i%400 == 0 {
			stored(t, s)
		}
	}
	e := storedEvent(7, "cam0", "nut")
	addImages(t, s, e)
	code, text, _ := ask(t, "GET", server.URL()+"api/events.jsonl", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, count, strings.Count(text, "\n"))

	code, text, header := ask(t, "GET", server.URL()+"api/events.csv?label=nut", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "text/csv; charset=utf-8", header.Get("Content-Type"))
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+count/2)
	row := rows[len(rows)-4]
	require.Equal(t, []string{
		e.ID, "cam0", "nut", "2026-11-25T12:00:07.5Z", "2026-11-25T12:00:10.5Z", "0.5", "10", "20", "30", "60", "inspection", "gate in",
		"colour=red",
		"12.5", "/api/events/" + e.ID + "/frame", "",
	}, row)

	code, text, _ = ask(t, "GET", server.URL()+"api/events.coco.json", nil)
	require.Equal(t, http.StatusOK, code)
	require.JSONEq(t, `{"images":[{"id":1,"file_name":"`+e.ID+`.jpg","width":64,"height":48,"date_captured":"2026-11-25T12:00:07.5Z",
		"coco_url":"/api/events/`+e.ID+`/frame"}],"annotations":[{"id":1,"image_id":1,"category_id":1,"bbox":[5,10,10,20],"area":200,"iscrowd":0,
		"score":0.5}],"categories":[{"id":1,"name":"nut"}]}`, text)
	for _, name := range []string{"jsonl", "csv", "coco.json"} {
		code, text, _ := ask(t, "GET", server.URL()+"api/events."+name+"?before=x", nil)
		require.Equal(t, http.StatusBadRequest, code)
		require.Contains(t, text, "before must be a time")
	}
}

func TestEventsThatAreNotStored(t *testing.T) {
	server := &Server{}
	serve(t, server, frames("cam0"))
	for _, path := range []string{
		"events", "events/1", "events.csv", "events.jsonl", "events.coco.json", "events/1/frame",
		"events/1/clip.mp4", "recordings", "recordings/spans", "recordings/1/video",
	} {
		code, text, _ := ask(t, "GET", server.URL()+"api/"+path, nil)
		require.Equal(t, http.StatusNotFound, code)
		require.Contains(t, text, "events are not stored: events.directory is off")
	}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	broken := &store.Store{Directory: file, Logger: slog.New(slog.DiscardHandler)}
	broken.Open()
	defer broken.Close()
	server = &Server{Events: broken}
	serve(t, server, frames("cam0"))
	for _, path := range []string{
		"events", "events/1", "events.csv", "events/1/frame", "recordings", "recordings/spans", "recordings/1/video",
	} {
		code, text, _ := ask(t, "GET", server.URL()+"api/"+path, nil)
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.NotContains(t, text, file)
	}
}

// FuzzEventFilter: no parameters make the store fail, and a page leads to the next.
func FuzzEventFilter(f *testing.F) {
	for _, query := range []string{
		"camera=a&limit=1", "zone=%00&attribute=a%3Db", "cursor=MS4x&after=2026-11-25T18:00:00Z",
		"before=0001-01-01T00:00:00Z",
	} {
		f.Add(query)
	}
	s := &store.Store{Directory: f.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	s.Open()
	f.Cleanup(func() { _ = s.Close() })
	for i := range 3 {
		s.Add(storedEvent(i, "a", "b"))
	}
	s.Settle()
	f.Fuzz(func(t *testing.T, query string) {
		request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/api/events", RawQuery: query}}
		filter, err := readFilter(request)
		if err != nil {
			return
		}
		events, next, err := s.Events(t.Context(), filter)
		if err != nil {
			require.ErrorIs(t, err, store.ErrCursor)
			return
		}
		require.LessOrEqual(t, len(events), filter.Limit)
		require.True(t, next == "" || len(events) == filter.Limit)
		require.True(t, slices.IsSortedFunc(events, func(a, b store.Event) int { return b.Start.Compare(a.Start) }))
	})
}
