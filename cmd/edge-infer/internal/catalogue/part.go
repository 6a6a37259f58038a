package catalogue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lockPoll is the interval between attempts to lock a file that another process downloads to.
const lockPoll = 100 * time.Millisecond

// openPart opens the file that a model is downloaded to, and locks it until it is closed. It waits while another process downloads the same
// model, until ctx ends.
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
