package main

import (
	"errors"
	"fmt"
	"image"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/postprocess"
)

const (
	snapshotQueue   = 4    // views that wait for the encoder; more are left out
	snapshotMargin  = 0.15 // of the box, on every side
	snapshotQuality = 85   // JPEG
)

// snapshots turns best views of objects into JPEG files and messages. The frame loop only copies the pixels; encoding has a goroutine of its
// own, and a view that finds the queue full is left out.
type snapshots struct {
	publish   func(camera, label string, jpeg []byte)
	directory string // ring on disk; empty for none
	keep      int
	logger    *slog.Logger

	requested atomic.Pointer[map[string]*atomic.Bool] // by camera: the whole picture is asked for
	free      chan *view
	full      chan *view
	done      sync.WaitGroup
	files     []string // the ring, oldest first; encoder goroutine only

	mu     sync.Mutex        // also held while a picture is published and while the cameras change
	newest map[string][]byte // JPEGs in memory by camera and object
	order  []string          // their keys, oldest first
}

// snapshotMemory is how many JPEGs are kept in memory for the page.
const snapshotMemory = 64

// view is a piece of a frame on its way to the encoder.
type view struct {
	camera, label, id             string
	pixels                        []byte
	format                        capture.PixelFormat
	width, height                 int // of what was copied
	left, top, right, bottom, row int // what to show of it; bytes from row to row
}

// Open starts the encoder.
func (s *snapshots) Open(cameras []pipeline.Camera) error {
	if s.directory != "" {
		if err := os.MkdirAll(s.directory, 0o755); err != nil {
			return fmt.Errorf("snapshots: %w", err)
		}
		files, err := filepath.Glob(filepath.Join(s.directory, "*.jpg"))
		if err != nil {
			return fmt.Errorf("snapshots: %w", err)
		}
		slices.Sort(files) // names begin with the time
		s.files = files
	}
	s.SetCameras(cameras)
	s.free, s.full = make(chan *view, snapshotQueue), make(chan *view, snapshotQueue)
	for range snapshotQueue {
		s.free <- new(view)
	}
	s.done.Go(s.encode)
	return nil
}

// SetCameras says which cameras there are from now on. When it has returned, no picture of another one is published any more.
func (s *snapshots) SetCameras(cameras []pipeline.Camera) {
	requested := map[string]*atomic.Bool{}
	for i := range cameras {
		requested[cameras[i].Name] = new(atomic.Bool)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requested.Store(&requested)
}

// Request asks for a picture of the camera's next frame. It may be called from any goroutine.
func (s *snapshots) Request(camera string) error {
	asked := (*s.requested.Load())[camera]
	if asked == nil {
		return fmt.Errorf("no camera %q", camera)
	}
	asked.Store(true)
	return nil
}

// Frame implements pipeline.Sink.
func (s *snapshots) Frame(in *pipeline.Inferred) {
	if in.Frame == nil {
		return
	}
	if asked := (*s.requested.Load())[in.Camera]; asked != nil && asked.Swap(false) {
		whole := postprocess.Box{X2: float32(in.Width), Y2: float32(in.Height)}
		if v := s.copy(in, whole); v != nil {
			v.label, v.id = allLabels, in.Time.UTC().Format("20060102T150405.000")
			s.full <- v
		}
	}
	if in.Happened == nil {
		return
	}
	for _, object := range in.Happened.Snapshots {
		v := s.copy(in, object.Box)
		if v == nil {
			return
		}
		v.label, v.id = report.Label(in.Labels, object.Class), object.ID()
		s.full <- v
	}
}

// copy takes the pixels of a box with a margin; nil when the encoder is behind. Formats that share colour between pixels are copied whole.
func (s *snapshots) copy(in *pipeline.Inferred, box postprocess.Box) *view {
	var v *view
	select {
	case v = <-s.free:
	default:
		return nil
	}
	f := in.Frame
	marginX, marginY := snapshotMargin*box.Width(), snapshotMargin*box.Height()
	left, right := max(0, int(box.X1-marginX)), min(f.Width, int(box.X2+marginX)+1)
	top, bottom := max(0, int(box.Y1-marginY)), min(f.Height, int(box.Y2+marginY)+1)
	v.camera, v.format = in.Camera, f.Format
	if left >= right || top >= bottom {
		s.free <- v
		return nil
	}
	if f.Format == capture.NV12 || f.Format == capture.YUYV {
		v.pixels = append(v.pixels[:0], f.Data...)
		v.width, v.height, v.row = f.Width, f.Height, f.Stride
		v.left, v.top, v.right, v.bottom = left, top, right, bottom
		return v
	}
	pixel := f.Format.RowBytes(1)
	v.pixels = v.pixels[:0]
	for y := top; y < bottom; y++ {
		v.pixels = append(v.pixels, f.Data[y*f.Stride+left*pixel:y*f.Stride+right*pixel]...)
	}
	v.width, v.height, v.row = right-left, bottom-top, (right-left)*pixel
	v.left, v.top, v.right, v.bottom = 0, 0, v.width, v.height
	return v
}

// encode makes and hands on JPEGs until Close.
func (s *snapshots) encode() {
	for v := range s.full {
		jpeg, err := v.jpeg()
		if err == nil {
			s.remember(v.camera+"/"+v.id, jpeg)
		}
		if err == nil && s.publish != nil {
			s.announce(v, jpeg)
		}
		if err == nil && s.directory != "" {
			err = s.store(v, jpeg)
		}
		if err != nil {
			s.logger.Warn("snapshot lost", "camera", v.camera, "error", err)
		}
		s.free <- v
	}
}

// announce publishes a picture, unless a reload has taken the camera away since: its topics are being cleared.
func (s *snapshots) announce(v *view, jpeg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (*s.requested.Load())[v.camera] != nil {
		s.publish(v.camera, v.label, jpeg)
	}
}

func (s *snapshots) remember(key string, jpeg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest == nil {
		s.newest = map[string][]byte{}
	}
	if s.newest[key] == nil {
		s.order = append(s.order, key)
	}
	s.newest[key] = jpeg
	if len(s.order) > snapshotMemory {
		delete(s.newest, s.order[0])
		s.order = s.order[1:]
	}
}

// Find gives the newest JPEG of an object by its id; fs.ErrNotExist when it is not kept. It may be called from any goroutine.
func (s *snapshots) Find(camera, id string) ([]byte, error) {
	s.mu.Lock()
	jpeg := s.newest[camera+"/"+id]
	s.mu.Unlock()
	if jpeg != nil {
		return jpeg, nil
	}
	if s.directory == "" {
		return nil, fs.ErrNotExist
	}
	entries, err := os.ReadDir(s.directory)
	if err != nil {
		return nil, err
	}
	prefix := id + "-" + fileName(camera) + "-"
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			return os.ReadFile(filepath.Join(s.directory, entry.Name()))
		}
	}
	return nil, fs.ErrNotExist
}

func (v *view) jpeg() ([]byte, error) {
	if v.row != v.format.RowBytes(v.width) {
		return nil, errors.New("padded rows")
	}
	kind, conversion := gocv.MatTypeCV8UC3, gocv.ColorConversionCode(-1)
	rows := v.height
	switch v.format {
	case capture.BGRx:
		kind, conversion = gocv.MatTypeCV8UC4, gocv.ColorBGRAToBGR
	case capture.GRAY8:
		kind = gocv.MatTypeCV8UC1
	case capture.NV12:
		kind, conversion, rows = gocv.MatTypeCV8UC1, gocv.ColorYUVToBGRNV12, v.height*3/2
	case capture.YUYV:
		kind, conversion = gocv.MatTypeCV8UC2, gocv.ColorYUVToBGRYUY2
	}
	picture, err := gocv.NewMatFromBytes(rows, v.width, kind, v.pixels)
	if err != nil {
		return nil, err
	}
	defer picture.Close()
	if conversion >= 0 {
		if err := gocv.CvtColor(picture, &picture, conversion); err != nil {
			return nil, err
		}
	}
	part := picture.Region(image.Rect(v.left, v.top, v.right, v.bottom))
	defer part.Close()
	buffer, err := gocv.IMEncodeWithParams(gocv.JPEGFileExt, part, []int{gocv.IMWriteJpegQuality, snapshotQuality})
	if err != nil {
		return nil, err
	}
	defer buffer.Close()
	return slices.Clone(buffer.GetBytes()), nil
}

// store adds a file to the ring and takes the oldest ones out. A better view of the same object replaces the one before.
func (s *snapshots) store(v *view, jpeg []byte) error {
	path := filepath.Join(s.directory, fmt.Sprintf("%s-%s-%s.jpg", v.id, fileName(v.camera), fileName(v.label)))
	part := path + ".part"
	if err := os.WriteFile(part, jpeg, 0o644); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	if slices.Contains(s.files, path) {
		return nil
	}
	s.files = append(s.files, path)
	for len(s.files) > s.keep {
		if err := os.Remove(s.files[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		s.files = s.files[1:]
	}
	return nil
}

// fileName makes a name of a label or camera that every file system takes.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|-`, r) {
			return '_'
		}
		return r
	}, name)
}

// Close ends the encoder when what waits is through. Frame must not be called any more. It is safe on one that was never opened.
func (s *snapshots) Close() {
	if s.full != nil {
		close(s.full)
		s.done.Wait()
		s.full = nil
	}
}
