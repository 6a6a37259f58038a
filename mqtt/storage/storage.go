// Package storage puts files on disk so that a power cut leaves the old or the new one.
package storage

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace puts new contents in a file's place, all or nothing. Only its owner may read them.
func Replace(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path))
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return SyncDirectory(filepath.Dir(path))
}

// SyncDirectory makes what was created, renamed and removed in a directory last.
func SyncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(directory.Sync(), directory.Close())
}
