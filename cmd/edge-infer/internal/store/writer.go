package store

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mattn/go-sqlite3"
)

const (
	// reopenPause is the time between two attempts to open a database, and pruneInterval between two checks of its limits.
	reopenPause   = 10 * time.Second
	pruneInterval = time.Minute
	// publishLimit bounds how long the publication of an event waits until it is stored. A disk that takes longer delays nothing further.
	publishLimit = 100 * time.Millisecond
)

// Settle returns when everything handed over before is on disk, or the disk has failed or takes too long: an event is stored before it is
// published.
func (s *Store) Settle() { s.queue.wait(publishLimit) }

// writer owns the connection that writes. Its methods and fields belong to the writer goroutine, and so do the changes in the queue.
type writer struct {
	*Store
	db     *connection // nil while there is no database
	lock   *os.File
	images int64 // bytes of all image files
	opened time.Time
	pruned time.Time
	begun  time.Time // of the monotonic clock
	clock  clock
}

// write is the writer goroutine. It closes first after the first attempt to open the database.
func (w *writer) write(first chan<- struct{}) {
	defer w.release()
	w.reopen()
	close(first)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var batch []job
	for {
		batch = w.queue.take(batch[:0])
		if len(batch) > 0 {
			w.commit(batch)
			continue
		}
		select {
		case <-w.queue.wake:
		case <-ticker.C:
			w.maintain()
		case <-w.stop:
			if w.queue.len() == 0 {
				return
			}
		}
	}
}

// maintain opens the database again after a failure, and enforces its limits.
func (w *writer) maintain() {
	now := time.Now()
	switch {
	case w.db == nil && now.Sub(w.opened) >= w.retry:
		w.reopen()
	case w.db != nil && now.Sub(w.pruned) >= pruneInterval:
		w.pruned = now
		if err := w.prune(now, w.clock.trusted(now, now.Sub(w.begun))); err != nil {
			w.failed(err)
		}
	}
}

// commit stores a batch in one transaction. If that fails, each change is tried by itself, so that one bad change costs no other.
func (w *writer) commit(batch []job) {
	err := w.transaction(func() error {
		for i := range batch {
			if err := batch[i].apply(); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range batch {
		result := err
		if err != nil && len(batch) > 1 && w.db != nil {
			result = w.transaction(batch[i].apply)
		}
		w.account(&batch[i], result)
	}
	w.queue.settle(len(batch))
}

// account counts the outcome of a change and passes it on.
func (w *writer) account(j *job, err error) {
	switch {
	case j.event && err == nil:
		w.stored.Add(1)
	case j.event:
		w.dropped.Add(1)
	}
	if j.done != nil {
		j.done <- err
	} else if err != nil && !j.event {
		w.Logger.Debug("event store: change not stored", "error", err)
	}
}

// transaction runs apply in a transaction, which is on disk when it returns nil.
func (w *writer) transaction(apply func() error) error {
	if w.db == nil {
		_, err := w.reader()
		return err
	}
	if err := w.db.transaction(apply); err != nil {
		return w.failed(err)
	}
	w.recovered()
	return nil
}

// failed decides what an error means: a damaged database is put aside, after other failures of the disk it is opened again.
func (w *writer) failed(err error) error {
	var cause sqlite3.Error
	if !errors.As(err, &cause) {
		return err
	}
	err = fmt.Errorf("event store: %w", err)
	switch cause.Code {
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		w.shut(err)
		if aside := w.putAside(err); aside != nil {
			w.setState(nil, aside)
			return aside
		}
		w.reopen()
	case sqlite3.ErrFull: // the file is intact
		w.mu.Lock()
		readers := w.readers
		w.mu.Unlock()
		w.setState(readers, fmt.Errorf("%w (free space, or lower events.max_mb)", err))
	case sqlite3.ErrConstraint, sqlite3.ErrError, sqlite3.ErrMisuse, sqlite3.ErrRange, sqlite3.ErrTooBig: // of one change
	default:
		w.shut(err)
	}
	return err
}

// recovered clears the problem after a successful change.
func (w *writer) recovered() {
	w.mu.Lock()
	readers, problem := w.readers, w.problem
	w.mu.Unlock()
	if problem != nil {
		w.setState(readers, nil)
	}
}
