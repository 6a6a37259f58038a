package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Event is what happened to one object, from its appearance to its end.
type Event struct {
	// ID is that of the object in MQTT events. Two cameras may have the same one in theory; then queries by ID return the newer event.
	ID     string
	Camera string
	Label  string
	// Start and Last are the times of the first and the latest detection that an event reported.
	Start, Last time.Time
	Ended       bool // the object is gone, or the daemon was
	Detail
	// Frame and Crop are the sizes of the image files in bytes, 0 for none; FrameWidth and FrameHeight are the frame's in pixels.
	Frame, Crop             int64
	FrameWidth, FrameHeight int
	// Clip is the ID of a clip that shows the event; empty for none.
	Clip string
	// ClipStart is when that clip begins, see record.StartOf.
	ClipStart time.Time
}

// Detail is the part of an event that no query selects by, stored as JSON.
type Detail struct {
	Score float64 `json:"score"` // highest
	// Box is the box of the best view in source pixels: x1, y1, x2, y2. Width and Height are the source image's.
	Box        [4]float64           `json:"box"`
	Width      int                  `json:"width,omitempty"`
	Height     int                  `json:"height,omitempty"`
	Zones      []string             `json:"zones,omitempty"` // that it has been in, in the order of entry
	Lines      []Crossing           `json:"lines,omitempty"` // that it has crossed
	Attributes map[string]Attribute `json:"attributes,omitempty"`
	// Verified is whether a verification service has confirmed the object; nil if none was asked.
	Verified *bool `json:"verified,omitempty"`
	// Length is the length of the path in source pixels, Distance on the ground in metres; 0 without calibration.
	Length   float64  `json:"length,omitempty"`
	Distance float64  `json:"distance_m,omitempty"`
	Path     [][2]int `json:"path,omitempty"` // bottom centre of the box in source pixels; of an object that is gone
}

// Crossing is one crossing of a line.
type Crossing struct {
	Line      string `json:"line"`
	Direction string `json:"direction"` // in or out
}

// Attribute is the result of a secondary network.
type Attribute struct {
	Value string  `json:"value"`
	Score float64 `json:"score"`
}

// tags are what events are found by besides camera, label and time: of all cameras and of their own. Attributes are found by name and by
// name and value.
func (d *Detail) tags(camera string) (tags []string) {
	add := func(tag string) {
		if !slices.Contains(tags, tag) {
			tags = append(tags, tag, ofCamera(tag, camera))
		}
	}
	for _, zone := range d.Zones {
		add(zoneTag(zone))
	}
	for _, crossing := range d.Lines {
		add("line:" + crossing.Line)
	}
	for name, attribute := range d.Attributes {
		add(attributeTag(name))
		add(attributeTag(name + "=" + attribute.Value))
	}
	return tags
}

// ofCamera returns the tag for events of one camera. Without it, a query for a zone that a camera has not would read all events of the
// zone.
func ofCamera(tag, camera string) string { return tag + "\n" + camera }

func zoneTag(name string) string { return "zone:" + name }

func attributeTag(name string) string { return "attribute:" + name }

// Add hands over an event that is new or has changed. Crossings are added to those that are stored; everything else replaces what is
// stored. It does not wait, and drops the change if too many are waiting.
func (s *Store) Add(e *Event) {
	stored := s.queue.add(job{event: true, apply: func() error { return s.writer.upsert(e) }})
	if !stored {
		s.dropped.Add(1)
	}
}

// upsert inserts or updates the row of an event, in a transaction of the writer.
func (w *writer) upsert(e *Event) error {
	var number, frame int64
	var before Detail
	var text string
	err := w.db.row(`SELECT number, frame, detail FROM events WHERE id = ? AND camera = ?`, []any{e.ID, e.Camera}, &number, &frame, &text)
	known := err == nil
	switch {
	case errors.Is(err, sql.ErrNoRows):
	case err != nil:
		return err
	default:
		if err := json.Unmarshal([]byte(text), &before); err != nil {
			return err
		}
	}
	detail := e.Detail
	detail.Lines = append(slices.Clone(before.Lines), e.Lines...)
	encoded, err := json.Marshal(&detail)
	if err != nil {
		return err
	}
	start, last := e.Start.UnixMicro(), e.Last.UnixMicro()
	if known {
		_, err = w.db.exec(`UPDATE events SET label = ?, last = ?, ended = ?, detail = ? WHERE number = ?`,
			e.Label, last, e.Ended, string(encoded), number)
	} else {
		var result sql.Result
		result, err = w.db.exec(`INSERT INTO events (id, camera, label, start, last, ended, detail) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			e.ID, e.Camera, e.Label, start, last, e.Ended, string(encoded))
		if err == nil {
			number, err = result.LastInsertId()
		}
	}
	if err == nil && e.Ended && frame > 0 {
		err = w.queueUpload(UploadSnapshot, e.ID, e.Camera)
	}
	if err != nil {
		return err
	}
	return w.retag(number, start, before.tags(e.Camera), detail.tags(e.Camera))
}

// retag replaces the tags of an event, in a transaction of the writer.
func (w *writer) retag(number, start int64, before, now []string) error {
	for _, tag := range before {
		if !slices.Contains(now, tag) {
			if _, err := w.db.exec(`DELETE FROM tags WHERE tag = ? AND start = ? AND event = ?`, tag, start, number); err != nil {
				return err
			}
		}
	}
	for _, tag := range now {
		if !slices.Contains(before, tag) {
			if _, err := w.db.exec(`INSERT INTO tags (tag, start, event) VALUES (?, ?, ?)`, tag, start, number); err != nil {
				return err
			}
		}
	}
	return nil
}
