// Package store keeps what happened, in one SQLite database and a directory of images: an event per object, its best snapshot, counts per
// minute, and the index of clips. The frame loop hands over copies and never waits; one goroutine writes.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of the limits.
const (
	DefaultDays  = 31
	DefaultMaxMB = 1024
)

// errNotOpen is returned while there is no database, without a known reason.
var errNotOpen = errors.New("event store: not open")

// Store is the running event store. Set the exported fields, Open it, Close it. Its methods may be called from any goroutine.
type Store struct {
	// Directory holds the database and the images and is created if missing. It must be on a disk of this machine.
	Directory string
	// ClipDirectory is the directory that the paths of clips are relative to; empty if no clips are recorded.
	ClipDirectory string
	// Days is the age at which events and counts are removed, MaxBytes the size of database and images together above which the oldest are.
	// Zero means the default. After Open, SetLimits changes them.
	Days     int
	MaxBytes int64
	// Uploads selects the files to upload, see NextUpload. After Open, SetUploads changes it.
	Uploads UploadKinds
	Logger  *slog.Logger

	retry time.Duration // between two attempts to open the database; reopenPause

	queue queue
	files chan imageFiles // to the goroutine that writes them

	stored        atomic.Uint64 // changes of events that are in the database
	dropped       atomic.Uint64 // changes of events, and images, that are not
	writingImages atomic.Int64  // snapshots that are not queued for the writer yet
	recent        recentClips

	mu      sync.Mutex
	readers *sql.DB // nil while there is no database
	problem error   // why new events are not stored

	writer writer

	stop chan struct{}
	done sync.WaitGroup
}

// Stats is the state of the store. Counters run from Open.
type Stats struct {
	Stored  uint64 `json:"stored"`  // changes of events in the database
	Dropped uint64 `json:"dropped"` // changes of events, and images, that could not be stored
	Queued  int    `json:"queued"`  // changes on their way
	Error   string `json:"error,omitempty"`
}

// openLimit bounds how long Open waits for the disk. The writer continues afterwards.
const openLimit = 5 * time.Second

// Open starts the writer and waits a moment until the database is open. A database that cannot be opened is logged and tried again: it
// costs stored events and nothing else.
func (s *Store) Open() {
	s.SetLimits(s.Days, s.MaxBytes)
	s.retry = cmp.Or(s.retry, reopenPause)
	s.writer = writer{Store: s, begun: time.Now()}
	s.queue.init()
	s.files = make(chan imageFiles, imageQueue)
	s.stop = make(chan struct{})
	first := make(chan struct{})
	s.done.Go(func() { s.writer.write(first) })
	s.done.Go(s.writeImages)
	select {
	case <-first:
	case <-time.After(openLimit):
		s.Logger.Warn("event store: the disk is slow, the start goes on without it", "directory", s.Directory)
	}
}

// Stats returns the current state.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Stored: s.stored.Load(), Dropped: s.dropped.Load(), Queued: s.queue.len() + int(s.writingImages.Load())}
	if s.problem != nil {
		stats.Error = s.problem.Error()
	}
	return stats
}

// SetLimits changes Days and MaxBytes. They are enforced within a minute.
func (s *Store) SetLimits(days int, maxBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Days, s.MaxBytes = cmp.Or(days, DefaultDays), cmp.Or(maxBytes, int64(DefaultMaxMB<<20))
}

// SetUploads changes which files are uploaded. Those that wait already stay in the queue.
func (s *Store) SetUploads(kinds UploadKinds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Uploads = kinds
}

// limits returns Days and MaxBytes.
func (s *Store) limits() (days int, maxBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Days, s.MaxBytes
}

// uploads returns Uploads.
func (s *Store) uploads() UploadKinds {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Uploads
}

// closeLimit bounds how long Close waits for the disk.
const closeLimit = 2 * time.Second

// Close stores what is queued, if the disk takes it in time, and closes the database. Frame must not be called any more. It is idempotent
// and safe on a store that was never opened.
func (s *Store) Close() error {
	if s.stop == nil || isClosed(s.stop) {
		return nil
	}
	close(s.stop)
	ended := make(chan struct{})
	go func() {
		s.done.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(closeLimit):
		return errors.New("event store: the disk does not take what is queued, the newest events are not stored")
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reader returns the connections for queries.
func (s *Store) reader() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readers == nil {
		return nil, cmp.Or(s.problem, errNotOpen)
	}
	return s.readers, nil
}

// setState publishes the connections for queries and logs a problem when it changes.
func (s *Store) setState(readers *sql.DB, problem error) {
	s.mu.Lock()
	before := s.problem
	if s.readers != nil && s.readers != readers {
		defer s.readers.Close() // waits for queries in progress
	}
	s.readers, s.problem = readers, problem
	s.mu.Unlock()
	switch {
	case problem != nil && (before == nil || before.Error() != problem.Error()):
		s.Logger.Error("events are not stored", "directory", s.Directory, "error", problem)
	case problem == nil && before != nil:
		s.Logger.Info("events are stored again", "directory", s.Directory)
	}
}

// change runs a change in a transaction of the writer and waits until it is stored.
func (s *Store) change(ctx context.Context, apply func() error) error {
	done := make(chan error, 1)
	if !s.queue.add(job{apply: apply, done: done}) {
		return errors.New("event store: too many changes are waiting for the disk")
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
