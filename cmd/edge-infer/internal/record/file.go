package record

import (
	"context"
	"os"
	"path/filepath"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// file is an open clip's file. Only tests have another than *os.File.
type file interface {
	Write(data []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// createFile creates a file and its directory.
func createFile(path string) (file, error) {
	if err := atomicfile.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
}

// writer appends to the file of one clip. One goroutine uses it.
type writer struct {
	recorder *Recorder
	clip     *Clip
	file     file
	size     int64 // of what is whole
	sync     bool  // see Settings
}

// openWriter adds the clip's row and then creates its file with the header.
func openWriter(ctx context.Context, r *Recorder, clip *Clip, header []byte) (*writer, error) {
	row, err := rowBox(clip)
	if err != nil {
		return nil, err
	}
	if err := r.checkMarker(); err != nil {
		return nil, err
	}
	if err := r.Index.OpenClip(ctx, clip); err != nil {
		return nil, err
	}
	w := &writer{recorder: r, clip: clip, sync: r.current().Sync}
	r.quota.add(clip)
	w.file, err = r.create(r.file(clip))
	if err == nil {
		err = w.write(ctx, append(header, row...))
	}
	if err == nil && w.sync {
		err = atomicfile.SyncDir(filepath.Dir(r.file(clip)))
	}
	if err != nil {
		_ = w.close(ctx, err)
		return nil, err
	}
	return w, nil
}

// write appends whole boxes.
func (w *writer) write(ctx context.Context, data []byte) error {
	if err := w.recorder.quota.admit(ctx, w.clip.ID, int64(len(data))); err != nil {
		return err
	}
	if _, err := w.file.Write(data); err != nil {
		return err
	}
	if w.sync {
		if err := w.file.Sync(); err != nil {
			return err
		}
	}
	w.size += int64(len(data))
	return nil
}

// close closes the file and updates the row, also after an error, which may have left a part of a box behind. A file without video is
// removed.
func (w *writer) close(ctx context.Context, failure error) error {
	path := w.recorder.file(w.clip)
	var err error
	if w.file != nil {
		if failure != nil {
			_ = w.file.Truncate(w.size) // the next start does it otherwise
		} else {
			err = w.file.Sync()
		}
		if err == nil && !w.sync {
			err = atomicfile.SyncDir(filepath.Dir(path))
		}
		_ = w.file.Close()
	}
	w.clip.State = Closed
	w.clip.Bytes = w.size
	if w.clip.Duration == 0 {
		w.clip.State = Lost
		w.clip.Bytes = 0
		_ = os.Remove(path) // the next start does it otherwise
	}
	w.recorder.quota.close(w.clip.ID, w.clip.Bytes)
	updateErr := w.recorder.Index.UpdateClip(ctx, w.clip)
	if err == nil {
		err = updateErr
	}
	return err
}
