// Package atomicfile replaces files in one step: whoever reads one finds what was there before or the whole of what is new, also after the
// power was cut. The directory must exist.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// File is a file that is being written. Nothing is seen of it until Commit.
type File struct {
	*os.File
	path string
	over bool
}

// Create begins a file of that mode in the place of path. Close it in any case.
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

// Commit puts what was written in its place. When it has returned nil it is on the disk.
func (f *File) Commit() error {
	if err := errors.Join(f.Sync(), f.File.Close()); err != nil {
		return err
	}
	if err := Move(f.Name(), f.path); err != nil {
		return err
	}
	f.over = true
	return nil
}

// Close removes what was written, unless it was committed. It is idempotent.
func (f *File) Close() error {
	if f.over {
		return nil
	}
	f.over = true
	err := f.File.Close()
	if errors.Is(err, fs.ErrClosed) { // by a Commit that failed
		err = nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// Write puts a file in place that holds data.
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

// Move puts a file that is on the disk in another place of the same file system. When it has returned nil that is on the disk too.
func Move(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// Adopt puts a file that another library has written and closed, in the same file system, in the place of path.
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

// SyncDir puts on the disk what was made, renamed and removed in a directory.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) { // network file systems keep directories their own way
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// Check finds out before the work whether Write will be able to.
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
