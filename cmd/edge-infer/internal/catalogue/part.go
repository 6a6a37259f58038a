package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is the interval between attempts to lock a file that another process downloads to.
const lockPoll = 100 * time.Millisecond

// Part is a file of the store that content is received in. It is locked until it is closed.
type Part struct{ *os.File }

// OpenPart opens the file for content with that SHA-256, which may hold the beginning of it. It waits while another process receives the
// same, until ctx ends.
func (s Store) OpenPart(ctx context.Context, hash string) (*Part, error) {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("model store: %w (set XDG_CACHE_HOME to a directory that can be written)", err)
	}
	path := filepath.Join(s.Dir, "."+hash+".part")
	s.removeStaleParts(path)
	file, err := openPart(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Part{file}, nil
}

// stalePart is the age from which a part is removed unless a process has it open.
const stalePart = 7 * 24 * time.Hour

// removeStaleParts removes what interrupted downloads left that nobody resumed, except for one path. What cannot be removed stays.
func (s Store) removeStaleParts(except string) {
	paths, _ := filepath.Glob(filepath.Join(s.Dir, ".*.part"))
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || path == except || !info.Mode().IsRegular() || time.Since(info.ModTime()) < stalePart {
			continue
		}
		file, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.Remove(path)
		}
		_ = file.Close() // nothing was written
	}
}

// Hash returns the SHA-256 of the content in hexadecimal digits.
func (p *Part) Hash() (string, error) { return fileHash(p.Name()) }

// Remove removes the file.
func (p *Part) Remove() error { return os.Remove(p.Name()) }

// openPart opens a file that is written to, and locks it until it is closed. It waits while another process has it, until ctx ends.
func openPart(ctx context.Context, path string) (*os.File, error) {
	for {
		info, err := os.Lstat(path)
		if err == nil && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file, remove it", path)
		}
		file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|syscall.O_NOFOLLOW, 0o644)
		if err != nil {
			return nil, err
		}
		if err := lock(ctx, file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		current, err := isCurrent(file, path)
		if err == nil && current {
			return file, nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

func lock(ctx context.Context, file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process downloads it: %w", context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

// isCurrent reports whether path still names the file. The process that had the lock may have installed or removed it.
func isCurrent(file *os.File, path string) (bool, error) {
	opened, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, named), err
}
