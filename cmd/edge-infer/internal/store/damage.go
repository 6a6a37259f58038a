package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mattn/go-sqlite3"
)

// isDamage reports whether the database's file itself is at fault.
func isDamage(err error) bool {
	var cause sqlite3.Error
	return errors.As(err, &cause) && (cause.Code == sqlite3.ErrCorrupt || cause.Code == sqlite3.ErrNotADB)
}

// putAside renames a damaged database, so that a new one is begun. The last damaged one is kept for recovery, earlier ones are removed.
func (w *writer) putAside(damage error) error {
	path := filepath.Join(w.Directory, databaseName)
	earlier, err := filepath.Glob(path + ".damaged-*")
	if err != nil {
		return err
	}
	for _, file := range earlier {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	aside := path + ".damaged-" + time.Now().UTC().Format("20060102T150405")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Rename(path+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	w.Logger.Error("event store: the database is damaged: it is put aside and a new one begun", "kept", aside, "error", damage)
	return nil
}
