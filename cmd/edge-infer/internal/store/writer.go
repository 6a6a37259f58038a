package store

import (
	"errors"
	"fmt"
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

// write is the writer goroutine. It closes first after the first attempt to open the database.
func (s *Store) write(first chan<- struct{}) {
	defer s.release()
	s.reopen()
	close(first)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var batch []job
	for {
		batch = s.queue.take(batch[:0])
		if len(batch) > 0 {
			s.commit(batch)
			continue
		}
		select {
		case <-s.queue.wake:
		case <-ticker.C:
			s.maintain()
		case <-s.stop:
			if s.queue.len() == 0 {
				return
			}
		}
	}
}

// maintain opens the database again after a failure, and enforces its limits.
func (s *Store) maintain() {
	now := time.Now()
	switch {
	case s.db == nil && now.Sub(s.opened) >= s.retry:
		s.reopen()
	case s.db != nil && now.Sub(s.pruned) >= pruneInterval:
		s.pruned = now
		if err := s.prune(now, s.clock.trusted(now, now.Sub(s.begun))); err != nil {
			s.failed(err)
		}
	}
}

// commit stores a batch in one transaction. If that fails, each change is tried by itself, so that one bad change costs no other.
func (s *Store) commit(batch []job) {
	err := s.transaction(func() error {
		for i := range batch {
			if err := batch[i].apply(); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range batch {
		result := err
		if err != nil && len(batch) > 1 && s.db != nil {
			result = s.transaction(batch[i].apply)
		}
		s.account(&batch[i], result)
	}
	s.queue.settle(len(batch))
}

// account counts the outcome of a change and passes it on.
func (s *Store) account(j *job, err error) {
	switch {
	case j.event && err == nil:
		s.stored.Add(1)
	case j.event:
		s.dropped.Add(1)
	}
	if j.done != nil {
		j.done <- err
	} else if err != nil && !j.event {
		s.Logger.Debug("event store: change not stored", "error", err)
	}
}

// transaction runs apply in a transaction, which is on disk when it returns nil.
func (s *Store) transaction(apply func() error) error {
	if s.db == nil {
		_, err := s.reader()
		return err
	}
	if err := s.db.transaction(apply); err != nil {
		return s.failed(err)
	}
	s.recovered()
	return nil
}

// failed decides what an error means: a damaged database is put aside, after other failures of the disk it is opened again.
func (s *Store) failed(err error) error {
	var cause sqlite3.Error
	if !errors.As(err, &cause) {
		return err
	}
	err = fmt.Errorf("event store: %w", err)
	switch cause.Code {
	case sqlite3.ErrCorrupt, sqlite3.ErrNotADB:
		s.shut(err)
		if aside := s.putAside(err); aside != nil {
			s.setState(nil, aside)
			return aside
		}
		s.reopen()
	case sqlite3.ErrFull: // the file is intact
		s.mu.Lock()
		readers := s.readers
		s.mu.Unlock()
		s.setState(readers, fmt.Errorf("%w (free space, or lower events.max_mb)", err))
	case sqlite3.ErrConstraint, sqlite3.ErrError, sqlite3.ErrMisuse, sqlite3.ErrRange, sqlite3.ErrTooBig: // of one change
	default:
		s.shut(err)
	}
	return err
}

// recovered clears the problem after a successful change.
func (s *Store) recovered() {
	s.mu.Lock()
	readers, problem := s.readers, s.problem
	s.mu.Unlock()
	if problem != nil {
		s.setState(readers, nil)
	}
}
