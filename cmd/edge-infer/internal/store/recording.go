package store

import (
	"context"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
)

const (
	// maxRecording is longer than any file of a continuous recording.
	maxRecording = time.Hour
	// spanGap is the longest time without video within a span.
	spanGap = 3 * time.Second
	// MaxSpans is the maximum number of spans of one query.
	MaxSpans = 5000
)

// Recording is a file of a camera's continuous recording.
type Recording struct {
	ID, Camera string
	Start      time.Time
	End        time.Time // zero while it is recorded
	Codec      string    // as of record.Clip
	Bytes      int64     // 0 while it is recorded
}

// Span is a stretch of time of which a camera's continuous recording has video, but for short gaps.
type Span struct {
	Camera string
	Start  time.Time
	End    time.Time // zero while it goes on
}

// recordingsOf returns the condition of the files of continuous recordings that a filter selects, and its arguments. Only the camera and
// the time of the filter count: a file shows some of the time from After to Before. Files are clips without events.
func (f *Filter) recordingsOf() (condition string, arguments []any) {
	conditions := []string{"events = '[]'", "state != 'lost'"}
	where := func(condition string, values ...any) {
		conditions = append(conditions, condition)
		arguments = append(arguments, values...)
	}
	if f.Camera != "" {
		where("camera = ?", f.Camera)
	}
	if !f.After.IsZero() {
		where("start > ?", f.After.Add(-maxRecording).UnixMicro()) // for the index
		where("(state = 'open' OR start + duration / 1000 > ?)", f.After.UnixMicro())
	}
	if !f.Before.IsZero() {
		where("start < ?", f.Before.UnixMicro())
	}
	return strings.Join(conditions, " AND "), arguments
}

// Recordings returns the files of continuous recordings that show some of the filter's time, newest first, and the cursor of the next page;
// empty for the last one. Label, Zone and Attribute of the filter are ignored.
func (s *Store) Recordings(ctx context.Context, f Filter) (files []Recording, next string, err error) {
	f.Limit = min(max(f.Limit, 1), MaxPage)
	db, err := s.reader()
	if err != nil {
		return nil, "", err
	}
	condition, arguments := f.recordingsOf()
	if f.Cursor != "" {
		c, err := parseCursor(f.Cursor)
		if err != nil {
			return nil, "", err
		}
		condition += " AND (start, rowid) < (?, ?)"
		arguments = append(arguments, c.start, c.number)
	}
	rows, err := db.QueryContext(ctx, `SELECT rowid, id, camera, start, duration, codec, bytes, state FROM clips WHERE `+condition+
		` ORDER BY start DESC, rowid DESC LIMIT ?`, append(arguments, f.Limit+1)...)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	var last cursor
	for rows.Next() {
		if len(files) == f.Limit {
			return files, last.String(), nil
		}
		var file Recording
		var duration int64
		var state record.State
		if err := rows.Scan(&last.number, &file.ID, &file.Camera, &last.start, &duration, &file.Codec, &file.Bytes, &state); err != nil {
			return nil, "", err
		}
		file.Start = time.UnixMicro(last.start).UTC()
		if state != record.Open {
			file.End = file.Start.Add(time.Duration(duration))
		}
		files = append(files, file)
	}
	return files, "", rows.Err()
}

// Spans returns the stretches of continuous recordings within the filter's time, for its camera or for all, newest first and MaxSpans at
// most.
func (s *Store) Spans(ctx context.Context, f Filter) (spans []Span, err error) {
	db, err := s.reader()
	if err != nil {
		return nil, err
	}
	condition, arguments := f.recordingsOf()
	rows, err := db.QueryContext(ctx, `SELECT camera, start, duration, state FROM clips WHERE `+condition+` ORDER BY start DESC`, arguments...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	earliest := map[string]int{} // by camera: the span that was found last
	for rows.Next() {
		var camera string
		var began, duration int64
		var state record.State
		if err := rows.Scan(&camera, &began, &duration, &state); err != nil {
			return nil, err
		}
		start := time.UnixMicro(began).UTC()
		end := start.Add(time.Duration(duration))
		at, found := earliest[camera]
		switch {
		case found && (state == record.Open || spans[at].Start.Sub(end) <= spanGap):
			spans[at].Start = start
			continue
		case len(spans) == MaxSpans:
			return spans, nil
		case state == record.Open:
			end = time.Time{}
		}
		earliest[camera] = len(spans)
		spans = append(spans, Span{camera, start, end})
	}
	return spans, rows.Err()
}
