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
func (w *writer) reopen() {
	w.opened = time.Now()
	err := w.open()
	if isDamage(err) {
		w.shut(err)
		if err = w.putAside(err); err == nil {
			err = w.open()
		}
	}
	if err != nil {
		w.shut(fmt.Errorf("event store: %w", err))
	}
}

// open opens the database.
func (w *writer) open() error {
	if err := atomicfile.MkdirAll(w.Directory, 0o750); err != nil {
		return fmt.Errorf("%w (events.directory names a directory that the service's user may write to)", err)
	}
	if err := checkFileSystem(w.Directory); err != nil {
		return err
	}
	if err := w.acquire(); err != nil {
		return err
	}
	path := filepath.Join(w.Directory, databaseName)
	var err error
	if w.db, err = openConnection(path); err != nil {
		return err
	}
	if err := w.db.migrate(); err != nil {
		return err
	}
	if err := w.repair(); err != nil {
		return err
	}
	readers, err := openReaders(path)
	if err != nil {
		return err
	}
	w.setState(readers, nil)
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
func (w *writer) acquire() error {
	if w.lock != nil {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(w.Directory, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return errors.New("another process stores its events in this directory (stop it, or set another events.directory)")
	}
	w.lock = file
	return nil
}

// shut closes the connections. The next attempt to open the database follows after a pause.
func (w *writer) shut(problem error) {
	w.setState(nil, problem)
	if w.db != nil {
		_ = w.db.close() // it has failed
		w.db = nil
	}
}

// release closes everything at the end.
func (w *writer) release() {
	w.mu.Lock()
	readers := w.readers
	w.readers = nil
	w.mu.Unlock()
	if readers != nil {
		_ = readers.Close() // nothing is unwritten there
	}
	if w.db != nil {
		if err := w.db.close(); err != nil {
			w.Logger.Warn("event store: database not closed cleanly, the next start repairs it", "error", err)
		}
		w.db = nil
	}
	if w.lock != nil {
		_ = w.lock.Close() // it holds nothing
		w.lock = nil
	}
}
