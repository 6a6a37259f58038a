package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
)

var _ record.Index = (*Store)(nil)

// OpenClip implements record.Index.
func (s *Store) OpenClip(ctx context.Context, clip *record.Clip) error {
	return s.change(ctx, s.writer.insertClip(clip))
}

// AdoptClip implements record.Index.
func (s *Store) AdoptClip(ctx context.Context, clip *record.Clip) error {
	return s.change(ctx, s.writer.insertClip(clip))
}

// insertClip adds or replaces the row of a clip.
func (w *writer) insertClip(clip *record.Clip) func() error {
	c := *clip
	return func() error {
		_, err := w.db.exec(`INSERT OR REPLACE INTO clips (id, camera, events, path, start, requested, duration, codec, bytes, state, pinned)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			append([]any{c.ID}, append(clipValues(&c), c.Pinned)...)...)
		if err != nil {
			return err
		}
		return w.linkClip(&c)
	}
}

// clipValues are the columns of a clip from camera to state.
func clipValues(c *record.Clip) []any {
	events, _ := json.Marshal(c.Events) // strings can always be written
	return []any{
		c.Camera, string(events), c.Path, c.Start.UnixMicro(), c.Requested.UnixMicro(), int64(c.Duration), c.Codec, c.Bytes, string(c.State),
	}
}

// linkClip replaces the links from events to a clip and queues a closed one for copying, in a transaction of the writer.
func (w *writer) linkClip(c *record.Clip) error {
	if _, err := w.db.exec(`DELETE FROM clip_events WHERE clip = ?`, c.ID); err != nil {
		return err
	}
	for _, event := range c.Events {
		if _, err := w.db.exec(`INSERT OR IGNORE INTO clip_events (event, camera, clip) VALUES (?, ?, ?)`, event, c.Camera, c.ID); err != nil {
			return err
		}
		if c.State != record.Lost {
			w.recent.add(c.Camera + "/" + event)
			continue
		}
		if err := w.unlinkRecent(event, c.Camera); err != nil {
			return err
		}
	}
	if c.State == record.Closed && len(c.Events) > 0 { // copying continuous recordings would hold up the clips
		return w.queueUpload(UploadClip, c.ID, c.Camera)
	}
	return nil
}

// unlinkRecent makes HasClip false for events whose clips are gone, in a transaction of the writer.
func (w *writer) unlinkRecent(event, camera string) error {
	var clips int
	err := w.db.row(`SELECT count(*) FROM clip_events c JOIN clips ON clips.id = c.clip
		WHERE c.event = ? AND c.camera = ? AND clips.state != ?`,
		[]any{event, camera, string(record.Lost)}, &clips)
	if err == nil && clips == 0 {
		w.recent.remove(camera + "/" + event)
	}
	return err
}

// removeLinks removes the links from events to a clip that was removed, in a transaction of the writer.
func (w *writer) removeLinks(id string) error {
	rows, err := w.db.query(`SELECT event, camera FROM clip_events WHERE clip = ?`, id)
	if err != nil {
		return err
	}
	defer rows.Close()
	var linked [][2]string
	for rows.Next() {
		var event, camera string
		if err := rows.Scan(&event, &camera); err != nil {
			return err
		}
		linked = append(linked, [2]string{event, camera})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if _, err := w.db.exec(`DELETE FROM clip_events WHERE clip = ?`, id); err != nil {
		return err
	}
	for _, l := range linked {
		if err := w.unlinkRecent(l[0], l[1]); err != nil {
			return err
		}
	}
	return nil
}

// UpdateClip implements record.Index.
func (s *Store) UpdateClip(ctx context.Context, clip *record.Clip) error {
	c := *clip
	return s.change(ctx, func() error {
		result, err := s.writer.db.exec(`UPDATE clips SET camera = ?, events = ?, path = ?, start = ?, requested = ?, duration = ?, codec = ?,
			bytes = ?, state = ? WHERE id = ?`, append(clipValues(&c), c.ID)...)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return s.writer.linkClip(&c)
	})
}

// RemoveClip implements record.Index.
func (s *Store) RemoveClip(ctx context.Context, id string) error {
	return s.change(ctx, func() error {
		result, err := s.writer.db.exec(`DELETE FROM clips WHERE id = ? AND NOT pinned`, id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			if err == nil {
				err = s.writer.removeLinks(id)
			}
			return err
		}
		var pinned int
		if err := s.writer.db.row(`SELECT count(*) FROM clips WHERE id = ?`, []any{id}, &pinned); err != nil {
			return err
		}
		if pinned > 0 {
			return record.ErrPinned
		}
		return nil
	})
}

// clipPage is the number of clips that are read at once, so that no query stays open while yield runs.
const clipPage = 500

// Clips implements record.Index.
func (s *Store) Clips(ctx context.Context, yield func(clip *record.Clip) bool) error {
	start, id := int64(-1<<63), ""
	for {
		page, err := s.clipPage(ctx, start, id)
		if err != nil {
			return err
		}
		for i := range page {
			if !yield(&page[i]) {
				return nil
			}
		}
		if len(page) < clipPage {
			return nil
		}
		last := &page[len(page)-1]
		start, id = last.Start.UnixMicro(), last.ID
	}
}

// clipPage returns the clips that follow one, by start and ID.
func (s *Store) clipPage(ctx context.Context, start int64, id string) (page []record.Clip, err error) {
	db, err := s.reader()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT id, camera, events, path, start, requested, duration, codec, bytes, state, pinned FROM clips
		WHERE (start, id) > (?, ?) ORDER BY start, id LIMIT ?`, start, id, clipPage)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c record.Clip
		var events string
		var began, requested, duration int64
		err := rows.Scan(&c.ID, &c.Camera, &events, &c.Path, &began, &requested, &duration, &c.Codec, &c.Bytes, &c.State, &c.Pinned)
		if err == nil {
			err = json.Unmarshal([]byte(events), &c.Events)
		}
		if err != nil {
			return nil, err
		}
		c.Start, c.Requested, c.Duration = time.UnixMicro(began).UTC(), time.UnixMicro(requested).UTC(), time.Duration(duration)
		page = append(page, c)
	}
	return page, rows.Err()
}

// SetPinned keeps a clip from being removed, or no longer. It returns an error if the clip is not stored.
func (s *Store) SetPinned(ctx context.Context, id string, pinned bool) error {
	return s.change(ctx, func() error {
		result, err := s.writer.db.exec(`UPDATE clips SET pinned = ? WHERE id = ?`, pinned, id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return errors.New("no clip " + id)
	})
}
