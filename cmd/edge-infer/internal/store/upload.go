package store

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// maxUploads is the number of files that may wait to be copied; beyond it the oldest are given up.
const maxUploads = 100_000

// UploadKind is the kind of a file to upload.
type UploadKind string

// The kinds of files.
const (
	UploadClip     UploadKind = "clip"
	UploadSnapshot UploadKind = "snapshot" // whole frame
)

// Upload is a file to upload. Its row is written in the transaction that completes the file, and is removed after the upload.
type Upload struct {
	Number     int64 // in the order of completion
	Kind       UploadKind
	ID, Camera string    // of the clip, or of the event
	Start      time.Time // of the clip, or of the event
	Path       string
}

// UploadKinds selects the files to upload.
type UploadKinds struct{ Clips, Snapshots bool }

// queueUpload adds a file, in a transaction of the writer. A file that is queued already, or being uploaded, is uploaded again.
func (w *writer) queueUpload(kind UploadKind, id, camera string) error {
	kinds := w.uploads()
	if kind == UploadClip && !kinds.Clips || kind == UploadSnapshot && !kinds.Snapshots {
		return nil
	}
	_, err := w.db.exec(`INSERT OR REPLACE INTO uploads (kind, id, camera) VALUES (?, ?, ?)`, string(kind), id, camera)
	return err
}

// queueInterrupted adds the snapshots of events that did not end, as repair is about to end them.
func (w *writer) queueInterrupted() error {
	if !w.uploads().Snapshots {
		return nil
	}
	_, err := w.db.exec(`INSERT OR REPLACE INTO uploads (kind, id, camera) SELECT ?, id, camera FROM events WHERE ended = 0 AND frame > 0`,
		string(UploadSnapshot))
	return err
}

// limitUploads gives up the oldest files beyond the limit.
func (w *writer) limitUploads() error {
	result, err := w.db.exec(`DELETE FROM uploads WHERE number <=
		(SELECT number FROM uploads ORDER BY number DESC LIMIT 1 OFFSET ?)`, maxUploads)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n > 0 {
		w.Logger.Warn("too many files wait to be copied, the oldest are given up", "files", n)
	}
	return err
}

// NextUpload returns the first file after a number; nil if there is none.
func (s *Store) NextUpload(ctx context.Context, after int64) (*Upload, error) {
	db, err := s.reader()
	if err != nil {
		return nil, err
	}
	u := &Upload{}
	err = db.QueryRowContext(ctx, `SELECT number, kind, id, camera FROM uploads WHERE number > ? ORDER BY number LIMIT 1`, after).
		Scan(&u.Number, &u.Kind, &u.ID, &u.Camera)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var start int64
	if u.Kind == UploadClip {
		var path string
		err = db.QueryRowContext(ctx, `SELECT start, path FROM clips WHERE id = ?`, u.ID).Scan(&start, &path)
		u.Path = filepath.Join(s.ClipDirectory, filepath.FromSlash(path))
	} else {
		err = db.QueryRowContext(ctx, `SELECT start FROM events WHERE id = ? AND camera = ?`, u.ID, u.Camera).Scan(&start)
		u.Path = s.imagePath(imageName(u.Camera, u.ID, frameImage))
	}
	if errors.Is(err, sql.ErrNoRows) { // removed since: there is no such file
		u.Path, err = "", nil
	}
	u.Start = time.UnixMicro(start).UTC()
	return u, err
}

// Open opens the file; fs.ErrNotExist if it was removed since.
func (u *Upload) Open() (*os.File, error) {
	if u.Path == "" {
		return nil, fs.ErrNotExist
	}
	return os.Open(u.Path)
}

// UploadDone removes a file from those that wait.
func (s *Store) UploadDone(ctx context.Context, u *Upload) error {
	return s.change(ctx, func() error {
		_, err := s.writer.db.exec(`DELETE FROM uploads WHERE number = ?`, u.Number)
		return err
	})
}

// WaitingUploads returns the number of files that wait.
func (s *Store) WaitingUploads(ctx context.Context) (n int, err error) {
	db, err := s.reader()
	if err == nil {
		err = db.QueryRowContext(ctx, `SELECT count(*) FROM uploads`).Scan(&n)
	}
	return n, err
}
