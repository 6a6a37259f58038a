package store

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
)

// MaxPage is the maximum number of events of one query.
const MaxPage = 1000

// Filter selects events. Empty fields match any.
type Filter struct {
	After, Before time.Time // start at After or later, and before Before
	Camera        string
	Label         string
	Zone          string // it has been in
	Attribute     string // NAME or NAME=VALUE
	Cursor        string // of the page before
	Limit         int    // 1 to MaxPage
}

// ErrCursor is returned for a cursor that no query has returned.
var ErrCursor = errors.New("cursor must be the value of next in an earlier response")

// cursor is the last event of a page.
type cursor struct{ start, number int64 }

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d.%d", c.start, c.number))
}

func parseCursor(text string) (c cursor, err error) {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return c, ErrCursor
	}
	start, number, found := strings.Cut(string(decoded), ".")
	if c.start, err = strconv.ParseInt(start, 10, 64); err != nil || !found {
		return c, ErrCursor
	}
	if c.number, err = strconv.ParseInt(number, 10, 64); err != nil {
		return c, ErrCursor
	}
	return c, nil
}

// columns are those of scan. A clip is the newest one that has a file.
const columns = `e.number, e.id, e.camera, e.label, e.start, e.last, e.ended, e.detail, e.frame, e.crop, e.frame_width, e.frame_height,
	(SELECT c.clip FROM clip_events c JOIN clips ON clips.id = c.clip
		WHERE c.event = e.id AND c.camera = e.camera AND clips.state != 'lost' ORDER BY clips.start DESC LIMIT 1)`

// statement returns the query of a filter and its arguments.
func (f *Filter) statement() (query string, arguments []any, err error) {
	var tags, conditions []string
	if f.Zone != "" {
		tags = append(tags, zoneTag(f.Zone))
	}
	if f.Attribute != "" {
		tags = append(tags, attributeTag(f.Attribute))
	}
	where := func(condition string, values ...any) {
		conditions = append(conditions, condition)
		arguments = append(arguments, values...)
	}
	from, start, number := "events e", "e.start", "e.number"
	if f.Camera != "" {
		for i := range tags {
			tags[i] = ofCamera(tags[i], f.Camera)
		}
	}
	if len(tags) > 0 { // in the order of the tag's index
		from, start, number = "tags t CROSS JOIN events e ON e.number = t.event", "t.start", "t.event"
		where("t.tag = ?", tags[0])
	}
	if len(tags) > 1 {
		where("EXISTS (SELECT 1 FROM tags o WHERE o.tag = ? AND o.start = t.start AND o.event = t.event)", tags[1])
	}
	if f.Camera != "" && len(tags) == 0 {
		where("e.camera = ?", f.Camera)
	}
	if f.Label != "" {
		where("e.label = ?", f.Label)
	}
	if !f.After.IsZero() {
		where(start+" >= ?", f.After.UnixMicro())
	}
	if !f.Before.IsZero() {
		where(start+" < ?", f.Before.UnixMicro())
	}
	if f.Cursor != "" {
		c, err := parseCursor(f.Cursor)
		if err != nil {
			return "", nil, err
		}
		where("("+start+", "+number+") < (?, ?)", c.start, c.number)
	}
	query = "SELECT " + columns + " FROM " + from
	if len(conditions) > 0 {
		query += " WHERE " + strings.Join(conditions, " AND ")
	}
	return query + " ORDER BY " + start + " DESC, " + number + " DESC LIMIT ?", append(arguments, f.Limit+1), nil
}

// Events returns the events that match, newest first, and the cursor of the next page; empty for the last one.
func (s *Store) Events(ctx context.Context, f Filter) (events []Event, next string, err error) {
	f.Limit = min(max(f.Limit, 1), MaxPage)
	db, err := s.reader()
	if err != nil {
		return nil, "", err
	}
	query, arguments, err := f.statement()
	if err != nil {
		return nil, "", err
	}
	rows, err := db.QueryContext(ctx, query, arguments...)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	var last cursor
	for rows.Next() {
		if len(events) == f.Limit {
			return events, last.String(), nil
		}
		e, number, err := scan(rows)
		if err != nil {
			return nil, "", err
		}
		last = cursor{e.Start.UnixMicro(), number}
		events = append(events, e)
	}
	return events, "", rows.Err()
}

// Event returns an event by its ID; fs.ErrNotExist if it is not stored.
func (s *Store) Event(ctx context.Context, id string) (*Event, error) {
	db, err := s.reader()
	if err != nil {
		return nil, err
	}
	e, _, err := scan(db.QueryRowContext(ctx, "SELECT "+columns+" FROM events e WHERE e.id = ? ORDER BY e.number DESC LIMIT 1", id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fs.ErrNotExist
	}
	return &e, err
}

// scan reads the columns of a row.
func scan(row interface{ Scan(to ...any) error }) (e Event, number int64, err error) {
	var start, last int64
	var detail string
	var clip sql.NullString
	err = row.Scan(&number, &e.ID, &e.Camera, &e.Label, &start, &last, &e.Ended, &detail, &e.Frame, &e.Crop, &e.FrameWidth, &e.FrameHeight,
		&clip)
	if err != nil {
		return e, 0, err
	}
	e.Start, e.Last, e.Clip = time.UnixMicro(start).UTC(), time.UnixMicro(last).UTC(), clip.String
	e.ClipStart = record.StartOf(e.Clip)
	return e, number, json.Unmarshal([]byte(detail), &e.Detail)
}

// ClipFile opens the file of a clip; fs.ErrNotExist if there is none.
func (s *Store) ClipFile(ctx context.Context, id string) (*os.File, error) {
	db, err := s.reader()
	if err != nil {
		return nil, err
	}
	var path string
	err = db.QueryRowContext(ctx, `SELECT path FROM clips WHERE id = ?`, id).Scan(&path)
	if errors.Is(err, sql.ErrNoRows) || s.ClipDirectory == "" {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return os.OpenInRoot(s.ClipDirectory, path)
}
