package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// marker is a file in the directory of clips. Without it the disk is not mounted, and clips would fill the one below.
const marker = ".edge-infer-clips"

// fileName is what this package's files are named like.
var fileName = regexp.MustCompile(`^\d{8}T\d{6}-[a-z0-9]{10}\.mp4$`)

// checkMarker returns an error if the directory is not the one with the clips.
func (r *Recorder) checkMarker() error {
	path := filepath.Join(r.Directory, marker)
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &missingError{path}
	}
	return err
}

// missingError reports that the disk with the clips is missing.
type missingError struct{ path string }

func (e *missingError) Error() string {
	return fmt.Sprintf("%s is missing, with the clips: mount the disk, or create this file to begin without them", e.path)
}

// prepare creates the directory and its marker, and fails if the directory is gone although there are clips in it.
func (r *Recorder) prepare(ctx context.Context) error {
	missing := r.checkMarker()
	var gone *missingError
	if !errors.As(missing, &gone) {
		return missing
	}
	known := false
	err := r.Index.Clips(ctx, func(clip *Clip) bool {
		known = clip.State != Lost
		return !known
	})
	if err != nil {
		return err
	}
	if known {
		return gone
	}
	if err := atomicfile.MkdirAll(r.Directory, 0o750); err != nil {
		return err
	}
	return atomicfile.Write(gone.path, []byte("edge-infer records clips only while this file exists.\n"), 0o640) // before the first clip's row
}

// sweep makes rows and files agree after a crash: files that were open are cut after their last whole fragment, rows without a file are
// lost, files without a row are adopted by the row that they contain. Files of others are left alone.
func (r *Recorder) sweep(ctx context.Context) error {
	var rows []*Clip
	err := r.Index.Clips(ctx, func(clip *Clip) bool {
		row := *clip
		rows = append(rows, &row)
		return ctx.Err() == nil
	})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, row := range rows {
		known[row.Path] = true
		if err := r.check(ctx, row); err != nil {
			return err
		}
	}
	return filepath.WalkDir(r.Directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !fileName.MatchString(entry.Name()) {
			return err
		}
		relative, err := filepath.Rel(r.Directory, path)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if known[relative] {
			return ctx.Err()
		}
		return r.adopt(ctx, relative)
	})
}

// check compares a row with its file.
func (r *Recorder) check(ctx context.Context, row *Clip) error {
	before := *row
	info, err := os.Stat(r.file(row))
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case err != nil:
		row.State = Lost
		row.Bytes = 0
	case row.State != Closed || info.Size() != row.Bytes:
		if err := r.repair(row); err != nil {
			return err
		}
	}
	if row.State != Lost {
		r.quota.add(row)
	}
	if row.State == before.State && row.Bytes == before.Bytes {
		return nil
	}
	r.Logger.Info("clip repaired", "camera", row.Camera, "file", row.Path, "state", row.State, "duration", row.Duration)
	return r.Index.UpdateClip(ctx, row)
}

// repair cuts a file after its last whole fragment and sets state, size and duration. A file without a fragment is removed. Only errors of
// the disk are errors.
func (r *Recorder) repair(row *Clip) error {
	path := r.file(row)
	found, err := readFile(path)
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return err
	}
	if err != nil || found.size == 0 {
		row.State = Lost
		row.Bytes = 0
		row.Duration = 0
		return os.Remove(path)
	}
	row.State = Closed
	row.Bytes = found.size
	row.Duration = found.duration
	return os.Truncate(path, found.size)
}

// adopt adds the row of a file, or removes the file if it has no video.
func (r *Recorder) adopt(ctx context.Context, path string) error {
	full := filepath.Join(r.Directory, filepath.FromSlash(path))
	found, err := readFile(full)
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return err
	}
	if err != nil || found.row == nil || found.row.ID == "" {
		r.Logger.Info("file without a clip removed", "file", path)
		return os.Remove(full)
	}
	row := found.row
	row.Path = path
	if err := r.repair(row); err != nil || row.State == Lost {
		return err
	}
	row.Pinned = false
	r.quota.add(row)
	r.Logger.Info("clip found again", "camera", row.Camera, "file", row.Path, "duration", row.Duration)
	return r.Index.AdoptClip(ctx, row)
}

// readFile reads the contents of a file.
func readFile(path string) (*contents, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return readContents(file, info.Size())
}

// expireInterval is how often clips that are too old are removed.
const expireInterval = time.Hour

// expire removes old clips until ctx ends. It waits while the time of day has been set within the last hour: a clock that is wrong for a
// moment must not cost the clips.
func (r *Recorder) expire(ctx context.Context) {
	ticker := time.NewTicker(expireInterval)
	defer ticker.Stop()
	offset := r.offset()
	for {
		now := r.offset()
		if age := r.current().MaxAge; age > 0 && (now-offset).Abs() < clockJump {
			r.quota.expire(ctx, r.wall().Add(-age))
			r.removeLost(ctx, age)
		}
		offset = now
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// removeLost removes rows without a file that are older than age.
func (r *Recorder) removeLost(ctx context.Context, age time.Duration) {
	var old []string
	before := r.wall().Add(-age)
	err := r.Index.Clips(ctx, func(clip *Clip) bool {
		if clip.State == Lost && clip.Start.Before(before) {
			old = append(old, clip.ID)
		}
		return true
	})
	for _, id := range old {
		err = errors.Join(err, r.Index.RemoveClip(ctx, id))
	}
	if err != nil && !errors.Is(err, ErrPinned) {
		r.Logger.Warn("old clips not removed", "error", err)
	}
}

// directoryName makes a name of a camera's directory that every file system takes.
func directoryName(camera string) string {
	name := strings.Map(func(c rune) rune {
		if c < ' ' || strings.ContainsRune(`/\:*?"<>|`, c) {
			return '_'
		}
		return c
	}, camera)
	if strings.Trim(name, ".") == "" {
		return "_" + name
	}
	return name
}
