package store

import (
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// imageQueue is the number of snapshots that may wait for the disk.
const imageQueue = 64

// imageDirectory is the directory of the images in the store's, with a directory per day.
const imageDirectory = "images"

// Snapshot is the best view of an object so far, as JPEGs.
type Snapshot struct {
	Camera, ID    string
	Frame, Crop   []byte // the whole frame, and the object with a margin
	Width, Height int    // of Frame
}

// imageFiles are a snapshot on its way to the disk.
type imageFiles struct {
	snapshot    Snapshot
	frame, crop string // paths
}

// imageName returns the path of an image in the images' directory. Its day is that of the object's start, which stands in its ID.
func imageName(camera, id, kind string) string {
	seconds, _, _ := strings.Cut(id, ".")
	at, _ := strconv.ParseInt(seconds, 10, 64)
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(camera))
	return fmt.Sprintf("%s/%s-%016x.%s.jpg", time.Unix(at, 0).UTC().Format(time.DateOnly), fileName(id), hash.Sum64(), kind)
}

// Kinds of images.
const (
	frameImage = "frame"
	cropImage  = "crop"
)

// fileName replaces what does not belong into a file's name. IDs have digits, points and hyphens only.
func fileName(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '.' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

func (s *Store) imagePath(name string) string {
	return filepath.Join(s.Directory, imageDirectory, filepath.FromSlash(name))
}

// AddSnapshot stores the images of an event, which must have been handed over before, in place of earlier ones. It does not wait, and drops
// the images if too many are waiting. The JPEGs belong to the store from then on.
func (s *Store) AddSnapshot(snapshot *Snapshot) {
	files := imageFiles{
		snapshot: *snapshot, frame: imageName(snapshot.Camera, snapshot.ID, frameImage), crop: imageName(snapshot.Camera, snapshot.ID, cropImage),
	}
	s.writingImages.Add(1)
	select {
	case s.files <- files:
	default:
		s.writingImages.Add(-1)
		s.dropped.Add(1)
	}
}

// writeImages is the goroutine that writes image files. It is not the writer's, so that a large file does not delay an event.
func (s *Store) writeImages() {
	for {
		select {
		case files := <-s.files:
			s.writeImage(&files)
			s.writingImages.Add(-1)
		case <-s.stop:
			return // at the end, images are not worth waiting for
		}
	}
}

// writeImage writes the files of a snapshot, then its row. A file without a row is removed by the next start.
func (s *Store) writeImage(files *imageFiles) {
	err := writeFile(s.imagePath(files.frame), files.snapshot.Frame)
	if err == nil {
		err = writeFile(s.imagePath(files.crop), files.snapshot.Crop)
	}
	if err != nil {
		s.dropped.Add(1)
		s.Logger.Debug("event store: image not stored", "error", err)
		return
	}
	if !s.queue.add(job{apply: func() error { return s.writer.addImages(files) }}) {
		s.dropped.Add(1)
	}
}

// addImages notes in an event's row that its images are there, in a transaction of the writer.
func (w *writer) addImages(files *imageFiles) error {
	snapshot := &files.snapshot
	var number, frame, crop int64
	var ended bool
	err := w.db.row(`SELECT number, frame, crop, ended FROM events WHERE id = ? AND camera = ?`, []any{snapshot.ID, snapshot.Camera}, &number,
		&frame, &crop, &ended)
	if err != nil { // the event was dropped
		w.dropped.Add(1)
		w.removeFiles(files.frame, files.crop)
		return nil //nolint:nilerr // it has been counted
	}
	_, err = w.db.exec(`UPDATE events SET frame = ?, crop = ?, frame_width = ?, frame_height = ? WHERE number = ?`,
		len(snapshot.Frame), len(snapshot.Crop), snapshot.Width, snapshot.Height, number)
	if err == nil && ended {
		err = w.queueUpload(UploadSnapshot, snapshot.ID, snapshot.Camera)
	}
	if err == nil {
		w.images += int64(len(snapshot.Frame)+len(snapshot.Crop)) - frame - crop
	}
	return err
}

// writeFile replaces a file. It is not synced: the start removes what a power cut has truncated.
func writeFile(path string, data []byte) error {
	temporary := path + ".tmp"
	err := os.WriteFile(temporary, data, 0o640)
	if os.IsNotExist(err) { // the first image of a day
		if err = atomicfile.MkdirAll(filepath.Dir(path), 0o750); err == nil {
			err = os.WriteFile(temporary, data, 0o640)
		}
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // it may not be there
	}
	return err
}

// removeFiles removes image files, and the directory of a day that is empty then.
func (s *Store) removeFiles(names ...string) {
	for _, name := range names {
		path := s.imagePath(name)
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			s.Logger.Warn("event store: image not removed", "error", err)
		}
		_ = os.Remove(filepath.Dir(path)) // fails while others are in it
	}
}

// imageFile opens an image of an event; fs.ErrNotExist if it has none.
func (s *Store) imageFile(e *Event, kind string, size int64) (*os.File, error) {
	if size == 0 {
		return nil, fs.ErrNotExist
	}
	return os.Open(s.imagePath(imageName(e.Camera, e.ID, kind)))
}

// FrameFile opens the whole frame of an event as JPEG; fs.ErrNotExist if there is none.
func (s *Store) FrameFile(e *Event) (*os.File, error) { return s.imageFile(e, frameImage, e.Frame) }

// CropFile opens the image of the object alone; fs.ErrNotExist if there is none.
func (s *Store) CropFile(e *Event) (*os.File, error) { return s.imageFile(e, cropImage, e.Crop) }
