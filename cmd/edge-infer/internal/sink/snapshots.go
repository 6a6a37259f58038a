package sink

import (
	"fmt"
	"image"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

const (
	snapshotQueue   = 4    // views that wait for the encoder; more are left out
	snapshotMargin  = 0.15 // of the box, on every side
	snapshotQuality = 85   // JPEG
	sceneWidth      = 1280 // pixels of a scene image; wider images are shrunk
)

// Intervals between two scene images of a camera, in nanoseconds: usually, and when something happens in between.
const (
	scenePause      = int64(10 * time.Second)
	scenePauseEvent = int64(2 * time.Second)
)

// ImagePublisher publishes JPEGs, which it copies; *mqtt.Client is one.
type ImagePublisher interface {
	// Image publishes the scene of a camera, Snapshot an object of a label, and RequestedSnapshot the scene that somebody asked for.
	Image(camera string, jpeg []byte)
	Snapshot(camera, label string, jpeg []byte)
	RequestedSnapshot(camera string, jpeg []byte)
}

// Snapshots turns best views of objects and the scenes of cameras into JPEG files and messages. The frame loop only copies the pixels;
// encoding has a goroutine of its own, and a view that finds the queue full is left out.
type Snapshots struct {
	Publisher ImagePublisher // nil for no messages
	Directory string         // images on disk; empty for none. Other files in it are left alone
	Keep      int            // images on disk; the oldest ones make room
	Logger    *slog.Logger

	scenes atomic.Pointer[map[string]*scene] // by camera
	free   chan *view
	full   chan *view
	done   sync.WaitGroup
	ring   *ring // nil for none; encoder goroutine only, but for find

	mu     sync.Mutex        // also held while an image is published and while the cameras change
	newest map[string][]byte // JPEGs in memory by camera and object
	order  []string          // their keys, oldest first
}

// snapshotMemory is how many JPEGs are kept in memory for the page.
const snapshotMemory = 64

// scene is when the whole image of a camera is due.
type scene struct {
	requested atomic.Bool
	last      int64 // CLOCK_MONOTONIC of the last scene image, 0 for none; frame loop only
}

// due reports whether a scene image shall be published of a frame.
func (s *scene) due(in *pipeline.Result) bool {
	since := in.Captured - s.last
	if s.last == 0 || since >= scenePause {
		return true
	}
	return since >= scenePauseEvent && in.Events != nil && slices.ContainsFunc(in.Events.Events, notable)
}

// notable reports whether an event is more than an update.
func notable(e zone.Event) bool { return e.Kind != zone.Update }

// purpose is what a view is for.
type purpose int

const (
	ofObject  purpose = iota
	requested         // the whole image, by a command
	ofScene
)

// view is a part of a frame for the encoder.
type view struct {
	purpose           purpose
	camera, label, id string
	pixels            jpegimage.Pixels
	part              image.Rectangle // what to show of them
}

// Open starts the encoder.
func (s *Snapshots) Open(cameras []pipeline.Camera) error {
	if s.Directory != "" {
		ring, err := openRing(s.Directory, s.Keep)
		if err != nil {
			return err
		}
		s.ring = ring
	}
	s.SetCameras(cameras)
	s.free, s.full = make(chan *view, snapshotQueue), make(chan *view, snapshotQueue)
	for range snapshotQueue {
		s.free <- new(view)
	}
	s.done.Go(s.encode)
	return nil
}

// SetCameras sets the current cameras. After it returns, no image of another camera is published.
func (s *Snapshots) SetCameras(cameras []pipeline.Camera) {
	scenes := map[string]*scene{}
	for i := range cameras {
		scenes[cameras[i].Name] = new(scene)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scenes.Store(&scenes)
}

// Request asks for an image of the camera's next frame. It may be called from any goroutine.
func (s *Snapshots) Request(camera string) error {
	asked := (*s.scenes.Load())[camera]
	if asked == nil {
		return fmt.Errorf("no camera %q", camera)
	}
	asked.requested.Store(true)
	return nil
}

// Frame implements pipeline.Sink.
func (s *Snapshots) Frame(in *pipeline.Result) {
	if in.Frame == nil {
		return
	}
	s.wholeImages(in)
	if in.Events == nil {
		return
	}
	for _, object := range in.Events.Snapshots {
		v := s.copy(in, object.Box)
		if v == nil {
			return
		}
		v.purpose = ofObject
		v.label, v.id = postprocess.Label(in.Labels, object.Class), object.ID()
		s.full <- v
	}
}

// wholeImages passes the whole image to the encoder if it was requested or is due.
func (s *Snapshots) wholeImages(in *pipeline.Result) {
	state := (*s.scenes.Load())[in.Camera]
	if state == nil {
		return
	}
	whole := postprocess.Box{X2: float32(in.Width), Y2: float32(in.Height)}
	if state.requested.Load() {
		if v := s.copy(in, whole); v != nil {
			state.requested.Store(false)
			v.purpose = requested
			v.label, v.id = allLabels, in.Time.UTC().Format("20060102T150405.000")
			s.full <- v
		}
	}
	if s.Publisher != nil && state.due(in) {
		if v := s.copy(in, whole); v != nil {
			state.last = in.Captured
			v.purpose = ofScene
			s.full <- v
		}
	}
}

// copy takes the pixels of a box with a margin; nil when the encoder is behind, or when nothing of the box is in the image.
func (s *Snapshots) copy(in *pipeline.Result, box postprocess.Box) *view {
	marginX, marginY := snapshotMargin*box.Width(), snapshotMargin*box.Height()
	part := image.Rect(int(box.X1-marginX), int(box.Y1-marginY), int(box.X2+marginX)+1, int(box.Y2+marginY)+1)
	part = part.Intersect(image.Rect(0, 0, in.Frame.Width, in.Frame.Height))
	if part.Empty() {
		return nil
	}
	select {
	case v := <-s.free:
		v.camera, v.part = in.Camera, v.pixels.Copy(in.Frame.Image(), part)
		return v
	default:
		return nil
	}
}

// encode makes and hands on JPEGs until Close.
func (s *Snapshots) encode() {
	encoder := jpegimage.Encoder{Quality: snapshotQuality}
	defer encoder.Close()
	for v := range s.full {
		encoder.MaxWidth = 0
		if v.purpose == ofScene {
			encoder.MaxWidth = sceneWidth
		}
		var jpeg []byte
		err := encoder.Load(&v.pixels, v.part)
		if err == nil {
			jpeg, err = encoder.JPEG()
		}
		if err == nil && s.Publisher != nil {
			s.publish(v, jpeg)
		}
		if err == nil && v.purpose != ofScene {
			s.remember(v.camera+"/"+v.id, jpeg)
			if s.ring != nil {
				err = s.ring.store(fmt.Sprintf("%s-%s-%s.jpg", v.id, fileName(v.camera), truncateLabel(fileName(v.label))), jpeg)
			}
		}
		if err != nil {
			s.Logger.Warn("snapshot lost", "camera", v.camera, "error", err)
		}
		s.free <- v
	}
}

// publish publishes an image, unless a reload has taken the camera away since: its topics are being cleared.
func (s *Snapshots) publish(v *view, jpeg []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (*s.scenes.Load())[v.camera] == nil {
		return
	}
	switch v.purpose {
	case ofScene:
		s.Publisher.Image(v.camera, jpeg)
	case requested:
		s.Publisher.RequestedSnapshot(v.camera, jpeg)
	case ofObject:
		s.Publisher.Snapshot(v.camera, v.label, jpeg)
	}
}

func (s *Snapshots) remember(key string, jpeg []byte) {
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

// Find returns the newest JPEG of an object by its id; fs.ErrNotExist if it is not kept. It may be called from any goroutine.
func (s *Snapshots) Find(camera, id string) ([]byte, error) {
	s.mu.Lock()
	jpeg := s.newest[camera+"/"+id]
	s.mu.Unlock()
	if jpeg != nil {
		return jpeg, nil
	}
	if s.ring == nil {
		return nil, fs.ErrNotExist
	}
	return s.ring.find(id + "-" + fileName(camera) + "-")
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

// maxLabelBytes is how many bytes of a label stand in the name of a file, which the kernel bounds to 255.
const maxLabelBytes = 80

// truncateLabel is a label, or as many whole characters of it as a file's name takes.
func truncateLabel(label string) string {
	if len(label) <= maxLabelBytes {
		return label
	}
	end := maxLabelBytes
	for end > 0 && !utf8.RuneStart(label[end]) {
		end--
	}
	return label[:end]
}

// Close ends the encoder when what waits is through. Frame must not be called any more. It is safe on one that was never opened.
func (s *Snapshots) Close() {
	if s.full != nil {
		close(s.full)
		s.done.Wait()
		s.full = nil
		if s.ring != nil {
			_ = s.ring.Close() // every line of it is on the disk
		}
	}
}
