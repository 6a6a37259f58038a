package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// databaseName is the database's file in the directory.
const databaseName = "events.db"

// migrations take a database from each version to the next; the version is SQLite's user_version. Times are microseconds since 1970.
var migrations = []string{`
CREATE TABLE events (
	number INTEGER PRIMARY KEY,
	id TEXT NOT NULL,
	camera TEXT NOT NULL,
	label TEXT NOT NULL,
	start INTEGER NOT NULL,
	last INTEGER NOT NULL,
	ended INTEGER NOT NULL,
	detail TEXT NOT NULL,
	frame INTEGER NOT NULL DEFAULT 0,
	crop INTEGER NOT NULL DEFAULT 0,
	frame_width INTEGER NOT NULL DEFAULT 0,
	frame_height INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX event_id ON events (id, camera);
CREATE INDEX event_start ON events (start);
CREATE INDEX event_camera ON events (camera, start);
CREATE INDEX event_label ON events (label, start);
CREATE INDEX event_camera_label ON events (camera, label, start);
CREATE INDEX event_open ON events (number) WHERE ended = 0;
CREATE INDEX event_images ON events (start) WHERE frame > 0;

CREATE TABLE tags (
	tag TEXT NOT NULL,
	start INTEGER NOT NULL,
	event INTEGER NOT NULL,
	PRIMARY KEY (tag, start, event)
) STRICT, WITHOUT ROWID;

CREATE TABLE counts (
	camera TEXT NOT NULL,
	minute INTEGER NOT NULL,
	measure TEXT NOT NULL,
	name TEXT NOT NULL,
	value REAL NOT NULL,
	PRIMARY KEY (camera, minute, measure, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE heat (
	camera TEXT NOT NULL,
	day TEXT NOT NULL,
	seconds BLOB NOT NULL,
	PRIMARY KEY (camera, day)
) STRICT;

CREATE TABLE clips (
	id TEXT PRIMARY KEY,
	camera TEXT NOT NULL,
	events TEXT NOT NULL,
	path TEXT NOT NULL,
	start INTEGER NOT NULL,
	requested INTEGER NOT NULL,
	duration INTEGER NOT NULL,
	codec TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	state TEXT NOT NULL,
	pinned INTEGER NOT NULL
) STRICT;
CREATE INDEX clip_start ON clips (start);

CREATE TABLE clip_events (
	event TEXT NOT NULL,
	camera TEXT NOT NULL,
	clip TEXT NOT NULL,
	PRIMARY KEY (event, camera, clip)
) STRICT, WITHOUT ROWID;
CREATE INDEX clip_event_clip ON clip_events (clip);
`, `
CREATE TABLE uploads (
	number INTEGER PRIMARY KEY AUTOINCREMENT,
	kind TEXT NOT NULL,
	id TEXT NOT NULL,
	camera TEXT NOT NULL,
	UNIQUE (kind, id, camera)
) STRICT;
`}

// reopen opens the database and repairs what a crash left behind. A damaged database is put aside.
func (s *Store) reopen() {
	s.opened = time.Now()
	err := s.open()
	if isDamage(err) {
		s.shut(err)
		if err = s.putAside(err); err == nil {
			err = s.open()
		}
	}
	if err != nil {
		s.shut(fmt.Errorf("event store: %w", err))
	}
}

// open opens the database.
func (s *Store) open() error {
	if err := atomicfile.MkdirAll(s.Directory, 0o750); err != nil {
		return fmt.Errorf("%w (events.directory names a directory that the service's user may write to)", err)
	}
	if err := checkFileSystem(s.Directory); err != nil {
		return err
	}
	if err := s.acquire(); err != nil {
		return err
	}
	path := filepath.Join(s.Directory, databaseName)
	var err error
	if s.db, err = openConnection(path); err != nil {
		return err
	}
	if err := s.db.migrate(); err != nil {
		return err
	}
	if err := s.repair(); err != nil {
		return err
	}
	readers, err := openReaders(path)
	if err != nil {
		return err
	}
	s.setState(readers, nil)
	return nil
}

// errNewer is returned for a database of a later version of this program.
var errNewer = errors.New("the database was written by a newer version of edge-infer (use that one, or move the directory away)")

// migrate brings the schema to the newest version.
func (c *connection) migrate() error {
	var version int
	if err := c.row("PRAGMA user_version", nil, &version); err != nil {
		return err
	}
	if version > len(migrations) {
		return errNewer
	}
	for ; version < len(migrations); version++ {
		err := c.transaction(func() error {
			return c.script(migrations[version] + fmt.Sprintf("; PRAGMA user_version = %d", version+1))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// acquire locks the directory: two processes would repair each other's work.
func (s *Store) acquire() error {
	if s.lock != nil {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(s.Directory, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return errors.New("another process stores its events in this directory (stop it, or set another events.directory)")
	}
	s.lock = file
	return nil
}

// shut closes the connections. The next attempt to open the database follows after a pause.
func (s *Store) shut(problem error) {
	s.setState(nil, problem)
	if s.db != nil {
		_ = s.db.close() // it has failed
		s.db = nil
	}
}

// release closes everything at the end.
func (s *Store) release() {
	s.mu.Lock()
	readers := s.readers
	s.readers = nil
	s.mu.Unlock()
	if readers != nil {
		_ = readers.Close() // nothing is unwritten there
	}
	if s.db != nil {
		if err := s.db.close(); err != nil {
			s.Logger.Warn("event store: database not closed cleanly, the next start repairs it", "error", err)
		}
		s.db = nil
	}
	if s.lock != nil {
		_ = s.lock.Close() // it holds nothing
		s.lock = nil
	}
}
