package store

import (
	"encoding/json"
	"time"
)

const (
	// ageBatch is the number of events that are removed for their age in a minute: if the clock is wrong for a while, little is lost.
	ageBatch = 1000
	// reserve is the free space of the disk in bytes below which images make room.
	reserve = 256 << 20
	// sizeBatch is the number of events that are removed at once for the size.
	sizeBatch = 500
)

// clock notices when the time of day is set: one that is wrong for a moment must not cost what is stored.
type clock struct {
	offset time.Duration // of the time of day to the monotonic clock; 0 before the first call
	set    time.Duration // when it was set, monotonic
	wrong  bool          // it was set within clockSettle
}

const (
	clockJump   = 2 * time.Second // a larger step of the time of day is a change of the clock
	clockSettle = time.Hour       // nothing is removed for its age for so long after one
)

// trusted reports whether the time of day was not set lately. monotonic is the time since any fixed moment.
func (c *clock) trusted(now time.Time, monotonic time.Duration) bool {
	offset := time.Duration(now.UnixNano()) - monotonic
	if c.offset != 0 && (offset-c.offset).Abs() >= clockJump {
		c.set = monotonic
		c.wrong = true
	}
	c.offset = offset
	c.wrong = c.wrong && monotonic-c.set < clockSettle
	return !c.wrong
}

// prune enforces the limits: that of the age only if the time of day can be trusted.
func (w *writer) prune(now time.Time, trusted bool) error {
	if trusted {
		if err := w.pruneOld(now); err != nil {
			return err
		}
	}
	return w.pruneLarge(now)
}

// pruneOld removes what is older than Days.
func (w *writer) pruneOld(now time.Time) error {
	days, _ := w.limits()
	cutoff := now.AddDate(0, 0, -days)
	if _, err := w.removeEvents(cutoff.UnixMicro(), ageBatch); err != nil {
		return err
	}
	if _, err := w.db.exec(`DELETE FROM counts WHERE minute < ?`, cutoff.Unix()/60); err != nil {
		return err
	}
	if _, err := w.db.exec(`DELETE FROM heat WHERE day < ?`, cutoff.Local().Format(time.DateOnly)); err != nil {
		return err
	}
	return w.limitUploads()
}

// pruneLarge enforces MaxBytes. Images go first, oldest first; the rows of events have half of the space.
func (w *writer) pruneLarge(now time.Time) error {
	_, maxBytes := w.limits()
	for {
		size, used, err := w.databaseSize()
		if err != nil {
			return err
		}
		if used <= maxBytes/2 {
			return w.limitImages(maxBytes - size)
		}
		n, err := w.removeEvents(now.AddDate(100, 0, 0).UnixMicro(), sizeBatch)
		if err != nil {
			return err
		}
		if n == 0 {
			return w.limitImages(maxBytes - size)
		}
	}
}

// limitImages removes the oldest images beyond a number of bytes and beyond the disk's reserve.
func (w *writer) limitImages(bytes int64) error {
	free, err := freeSpace(w.Directory)
	if err != nil {
		return err
	}
	return w.removeImages(max(min(bytes, w.images+free-reserve), 0))
}

// databaseSize returns the size of the database's file and how much of it is in use, in bytes.
func (w *writer) databaseSize() (size, used int64, err error) {
	var pages, free, page int64
	err = w.db.row(`SELECT p.page_count, f.freelist_count, s.page_size FROM pragma_page_count p, pragma_freelist_count f, pragma_page_size s`,
		nil, &pages, &free, &page)
	return pages * page, (pages - free) * page, err
}

// oldest is an event that is to be removed, or its images.
type oldest struct {
	number, start int64
	id, camera    string
	bytes         int64
	detail        string
}

func (w *writer) oldest(query string, arguments ...any) (found []oldest, err error) {
	rows, err := w.db.query(query, arguments...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o oldest
		if err := rows.Scan(&o.number, &o.start, &o.id, &o.camera, &o.bytes, &o.detail); err != nil {
			return nil, err
		}
		found = append(found, o)
	}
	return found, rows.Err()
}

// removeEvents removes events that began before a time, oldest first, with their images, and returns their number. Events of pinned clips
// stay.
func (w *writer) removeEvents(before int64, limit int) (int, error) {
	found, err := w.oldest(`SELECT number, start, id, camera, frame + crop, detail FROM events e WHERE start < ? AND NOT EXISTS (
		SELECT 1 FROM clip_events c JOIN clips ON clips.id = c.clip WHERE c.event = e.id AND c.camera = e.camera AND clips.pinned)
		ORDER BY start LIMIT ?`, before, limit)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	err = w.transaction(func() error {
		for i := range found {
			var detail Detail
			if err := json.Unmarshal([]byte(found[i].detail), &detail); err != nil {
				return err
			}
			if err := w.retag(found[i].number, found[i].start, detail.tags(found[i].camera), nil); err != nil {
				return err
			}
			if _, err := w.db.exec(`DELETE FROM events WHERE number = ?`, found[i].number); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		w.forgetImages(found)
	}
	return len(found), err
}

// removeImages removes the oldest images until the rest have at most so many bytes.
func (w *writer) removeImages(limit int64) error {
	for w.images > limit {
		found, err := w.oldest(`SELECT number, start, id, camera, frame + crop, '' FROM events WHERE frame > 0 ORDER BY start LIMIT ?`, sizeBatch)
		if err != nil || len(found) == 0 {
			return err
		}
		excess := w.images - limit
		for i := range found {
			if excess -= found[i].bytes; excess <= 0 {
				found = found[:i+1]
				break
			}
		}
		err = w.transaction(func() error {
			for i := range found {
				if _, err := w.db.exec(`UPDATE events SET frame = 0, crop = 0 WHERE number = ?`, found[i].number); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		w.forgetImages(found)
	}
	return nil
}

// forgetImages removes the files of events whose rows do not name them any more.
func (w *writer) forgetImages(of []oldest) {
	for i := range of {
		if of[i].bytes == 0 {
			continue
		}
		w.images -= of[i].bytes
		w.removeFiles(imageName(of[i].camera, of[i].id, frameImage), imageName(of[i].camera, of[i].id, cropImage))
	}
}
