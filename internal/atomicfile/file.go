// Package atomicfile replaces files atomically: a reader sees either the old or the complete new contents, even after a power failure.
// The directory must exist.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a temporary file that replaces the file at its path on Commit.
type File struct {
	*os.File
	path string
	done bool // committed or closed
}

// Create opens a temporary file next to path. The caller must call Close, also after Commit.
func Create(path string, mode fs.FileMode) (*File, error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	f := &File{File: file, path: path}
	if err := file.Chmod(mode); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Commit syncs the file and moves it to its path. When it returns nil, the contents are on disk.
func (f *File) Commit() error {
	if err := errors.Join(f.Sync(), f.File.Close()); err != nil {
		return err
	}
	if err := Move(f.Name(), f.path); err != nil {
		return err
	}
	f.done = true
	return nil
}

// Close removes the temporary file unless it was committed. It is idempotent.
func (f *File) Close() error {
	if f.done {
		return nil
	}
	f.done = true
	err := f.File.Close()
	if errors.Is(err, fs.ErrClosed) { // closed by a Commit that failed
		err = nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// Write replaces the file at path with data.
func Write(path string, data []byte, mode fs.FileMode) error {
	f, err := Create(path, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Commit()
	}
	return errors.Join(err, f.Close())
}

// Move renames a synced file within a file system and syncs the directory. When it returns nil, the new name is on disk.
func Move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// Adopt syncs a file that a library wrote and closed, then moves it to path in the same file system.
func Adopt(written, path string) error {
	file, err := os.Open(written)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return Move(written, path)
}

// SyncDir syncs a directory, which makes files created, renamed and removed in it durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // some network file systems cannot sync directories
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// MkdirAll creates a directory with its parents, like os.MkdirAll, and makes their names durable: without that a power failure takes all
// that was synced in a new directory.
func MkdirAll(path string, mode fs.FileMode) error {
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := MkdirAll(parent, mode); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: path, Err: syscall.ENOTDIR}
	}
	return SyncDir(parent)
}

// Check returns an error if Write could not create the file. Long-running commands call it before they start.
func Check(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory (name the file to write)", path)
	}
	probe, err := os.CreateTemp(filepath.Dir(path), ".probe-*")
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w (name a file in a directory that exists and is writable)", path, errors.Unwrap(err))
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
