package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of the free space that clips leave on their file system.
const (
	reserveShare = 20 // one part in
	maxReserve   = 2 << 30
)

// quota bounds what clips take on the disk, with open files counted, and removes the oldest clips. Only one process may use a directory.
// Its methods may be called from any goroutine.
type quota struct {
	directory string
	maxBytes  int64
	index     Index
	// space returns the free bytes and the size of the directory's file system.
	space func(directory string) (free, size int64, err error)

	mu      sync.Mutex // held while clips are removed
	entries []entry    // oldest first
	total   int64
}

// entry is a clip's file.
type entry struct {
	id, path string
	start    time.Time
	bytes    int64
	open     bool
}

// space returns the free bytes, for a user without privileges, and the size of a file system.
func space(directory string) (free, size int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(directory, &s); err != nil {
		return 0, 0, err
	}
	return int64(s.Bavail) * s.Bsize, int64(s.Blocks) * s.Bsize, nil
}

// add adds a file, which has the given size already.
func (q *quota) add(clip *Clip) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = append(q.entries, entry{id: clip.ID, path: clip.Path, start: clip.Start, bytes: clip.Bytes, open: clip.State == Open})
	q.total += clip.Bytes
}

// admit makes room for n more bytes of a clip. They count from now on.
func (q *quota) admit(ctx context.Context, id string, n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.total+n > q.maxBytes {
		if !q.removeOldest(ctx) {
			return fmt.Errorf("the limit of %s is reached by open and pinned clips", megabytes(q.maxBytes))
		}
	}
	for {
		free, size, err := q.space(q.directory)
		if err != nil {
			return err
		}
		reserve := min(size/reserveShare, maxReserve)
		if free-n >= reserve {
			break
		}
		if !q.removeOldest(ctx) {
			return fmt.Errorf("the disk is full: %s are free, %s are left to others", megabytes(free), megabytes(reserve))
		}
	}
	if at := q.find(id); at >= 0 {
		q.entries[at].bytes += n
		q.total += n
	}
	return nil
}

// find returns the place of a clip, -1 if it is not there. Open ones are among the newest. The lock is held.
func (q *quota) find(id string) int {
	for i := range slices.Backward(q.entries) {
		if q.entries[i].id == id {
			return i
		}
	}
	return -1
}

// close sets the final size of a clip; a size of 0 means that it has no file.
func (q *quota) close(id string, size int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := q.find(id)
	if at < 0 {
		return
	}
	e := &q.entries[at]
	q.total += size - e.bytes
	e.bytes = size
	e.open = false
	if size == 0 {
		q.entries = slices.Delete(q.entries, at, at+1)
	}
}

// expire removes clips that began before a time.
func (q *quota) expire(ctx context.Context, before time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := 0; i < len(q.entries); {
		e := &q.entries[i]
		if e.open || !e.start.Before(before) || q.remove(ctx, i) != nil {
			i++
		}
	}
}

// setLimit changes how many bytes all clips may have. The next write makes room.
func (q *quota) setLimit(bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.maxBytes = bytes
}

// clear forgets all clips.
func (q *quota) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries, q.total = nil, 0
}

// removeOldest removes the oldest clip that is neither open nor pinned, and reports whether there was one. The lock is held.
func (q *quota) removeOldest(ctx context.Context) bool {
	for i := range q.entries {
		if !q.entries[i].open && q.remove(ctx, i) == nil {
			return true
		}
	}
	return false
}

// remove removes a clip, its row first: no row is without a file then. A file that cannot be removed is without a row, and the next start
// removes it. An error is that of the index. The lock is held.
func (q *quota) remove(ctx context.Context, i int) error {
	e := q.entries[i]
	if err := q.index.RemoveClip(ctx, e.id); err != nil {
		return err
	}
	err := os.Remove(filepath.Join(q.directory, filepath.FromSlash(e.path)))
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		q.total -= e.bytes
	}
	q.entries = slices.Delete(q.entries, i, i+1)
	return nil
}

// usage returns the number of clips and their bytes.
func (q *quota) usage() (clips int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.entries), q.total
}

func megabytes(n int64) string { return fmt.Sprintf("%d MB", n/1e6) }
