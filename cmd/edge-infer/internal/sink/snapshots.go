package sink

import (
	"fmt"
	"image"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/jpegimage"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

const (
	snapshotQueue   = 4    // views that wait for the encoder; more are dropped
	snapshotMargin  = 0.15 // of the box, on every side
	snapshotQuality = 85   // JPEG
	frameWidth      = 1280 // pixels of an image of the whole frame; wider ones are shrunk
)

// Intervals between two scene images of a camera, in nanoseconds: usually, and when something happens in between.
const (
	scenePause      = int64(10 * time.Second)
	scenePauseEvent = int64(2 * time.Second)
)

// ImagePublisher publishes JPEGs, which it copies; *mqtt.Client is one.
type ImagePublisher interface {
	// Online reports whether a broker is connected; scenes are taken only then. It does not wait.
	Online() bool
	// Image publishes the scene of a camera, Snapshot an object of a label, and RequestedSnapshot the scene that somebody asked for.
	Image(camera string, jpeg []byte)
	Snapshot(camera, label string, jpeg []byte)
	RequestedSnapshot(camera string, jpeg []byte)
}

// SnapshotStore keeps the best snapshot of each object; *store.Store is one. AddSnapshot must not block.
type SnapshotStore interface {
	AddSnapshot(snapshot *store.Snapshot)
}

// ObjectImage is an image of an object on its way to the outputs.
type ObjectImage struct {
	store.Snapshot
	Label string
	// Relabelled is whether Label is another one than the network's; Labels are those that the network has.
	Relabelled bool
	Labels     []string
}

// ImageHolder decides whether and when an image of an object is published and stored.
type ImageHolder interface {
	// Image takes an image, and calls deliver once or not at all, from any goroutine. It must not wait.
	Image(image *ObjectImage, deliver func(*ObjectImage))
}

// Snapshots turns best views of objects and the scenes of cameras into JPEGs for messages and the event store. The frame loop only leases
// the frames; copying and encoding have goroutines of their own, and a view that finds the queue full is dropped: the object's next one is
// taken instead.
type Snapshots struct {
	Publisher ImagePublisher // nil for no messages
	Store     SnapshotStore  // nil for none
	Holder    ImageHolder    // nil for none: images are published and stored at once
	Logger    *slog.Logger

	scenes atomic.Pointer[map[string]*scene] // by camera
	free   chan *view
	full   chan *view // their pixels are in the leased frames
	copied chan *view
	done   sync.WaitGroup

	mu sync.Mutex // held while an image is published and while the cameras change
}

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
	purpose purpose
	camera  string
	pixels  jpegimage.Pixels
	part    image.Rectangle // what to show of them
	objects []croppedObject // with purpose ofObject
	labels  []string        // of the network
}

// croppedObject is an object in a view.
type croppedObject struct {
	label, id string
	part      image.Rectangle // of the view's pixels
}

// Open starts the goroutines.
func (s *Snapshots) Open(cameras []pipeline.Camera) {
	s.SetCameras(cameras)
	s.free, s.full, s.copied = make(chan *view, snapshotQueue), make(chan *view, snapshotQueue), make(chan *view, snapshotQueue)
	for range snapshotQueue {
		s.free <- new(view)
	}
	s.done.Go(s.fetch)
	s.done.Go(s.encode)
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
	if in.Events == nil || s.Store == nil && s.Publisher == nil && s.Holder == nil {
		return
	}
	if s.Store == nil {
		for _, object := range in.Events.Snapshots {
			s.objects(in, boxWithMargin(object.Box), object)
		}
	} else if len(in.Events.Snapshots) > 0 {
		s.objects(in, wholeImage(in), in.Events.Snapshots...)
	}
}

// objects passes a part of the image to the encoder, for the snapshots of objects in it.
func (s *Snapshots) objects(in *pipeline.Result, part image.Rectangle, objects ...*zone.Object) {
	v := s.lease(in, part)
	if v == nil {
		for _, object := range objects {
			object.RetrySnapshot()
		}
		return
	}
	v.purpose, v.labels = ofObject, in.Labels
	origin := part.Intersect(wholeImage(in)).Min.Sub(v.part.Min)
	for _, object := range objects {
		crop := boxWithMargin(object.Box).Intersect(wholeImage(in))
		if !crop.Empty() {
			v.objects = append(v.objects, croppedObject{postprocess.Label(in.Labels, object.Class), object.ID(), crop.Sub(origin)})
		}
	}
	s.full <- v
}

func wholeImage(in *pipeline.Result) image.Rectangle {
	return image.Rect(0, 0, in.Frame.Width, in.Frame.Height)
}

// boxWithMargin returns the part of an image that a snapshot shows. It may extend over the image's edges.
func boxWithMargin(box postprocess.Box) image.Rectangle {
	x, y := snapshotMargin*box.Width(), snapshotMargin*box.Height()
	return image.Rect(int(box.X1-x), int(box.Y1-y), int(box.X2+x)+1, int(box.Y2+y)+1)
}

// wholeImages passes the whole image to the encoder if it was requested or is due.
func (s *Snapshots) wholeImages(in *pipeline.Result) {
	state := (*s.scenes.Load())[in.Camera]
	if state == nil {
		return
	}
	if state.requested.Load() {
		if v := s.lease(in, wholeImage(in)); v != nil {
			state.requested.Store(false)
			v.purpose = requested
			s.full <- v
		}
	}
	if s.Publisher == nil || !state.due(in) || !s.Publisher.Online() {
		return
	}
	v := s.take(in, func(p *jpegimage.Pixels) (image.Rectangle, error) {
		return wholeImage(in), p.LeaseSmall(in, frameWidth)
	})
	if v != nil {
		state.last = in.Captured
		v.purpose = ofScene
		s.full <- v
	}
}

// lease takes a part of the frame; nil when the encoder is behind, or when nothing of the part is in the image.
func (s *Snapshots) lease(in *pipeline.Result, part image.Rectangle) *view {
	part = part.Intersect(wholeImage(in))
	if part.Empty() {
		return nil
	}
	return s.take(in, func(p *jpegimage.Pixels) (image.Rectangle, error) { return p.Lease(in, part) })
}

// take returns a view of the frame whose pixels lease has leased; nil when the encoder is behind.
func (s *Snapshots) take(in *pipeline.Result, lease func(*jpegimage.Pixels) (image.Rectangle, error)) *view {
	select {
	case v := <-s.free:
		part, err := lease(&v.pixels)
		if err != nil { // the GPU fails, which the pipeline reports with the next frame
			s.free <- v
			return nil
		}
		v.camera, v.part, v.objects = in.Camera, part, v.objects[:0]
		return v
	default:
		return nil
	}
}

// fetch copies the pixels of leased frames until Close. It is not the encoder's goroutine, so that frames do not wait for one another.
func (s *Snapshots) fetch() {
	for v := range s.full {
		v.pixels.Fetch()
		s.copied <- v
	}
	close(s.copied)
}

// encode makes and hands on JPEGs until Close.
func (s *Snapshots) encode() {
	encoder := jpegimage.Encoder{Quality: snapshotQuality}
	defer encoder.Close()
	for v := range s.copied {
		encode := s.encodeFrame
		if v.purpose == ofObject {
			encode = s.encodeObjects
		}
		if err := encode(&encoder, v); err != nil {
			s.Logger.Warn("snapshot lost", "camera", v.camera, "error", err)
		}
		s.free <- v
	}
}

// encodeFrame publishes an image of the whole frame.
func (s *Snapshots) encodeFrame(encoder *jpegimage.Encoder, v *view) error {
	encoder.MaxWidth = 0
	if v.purpose == ofScene {
		encoder.MaxWidth = frameWidth
	}
	jpeg, err := encodePart(encoder, v, v.part)
	if err == nil && s.Publisher != nil {
		s.publish(v, "", jpeg)
	}
	return err
}

// encodeObjects makes the snapshots of objects.
func (s *Snapshots) encodeObjects(encoder *jpegimage.Encoder, v *view) error {
	snapshot := store.Snapshot{Camera: v.camera}
	if s.Store != nil {
		encoder.MaxWidth = frameWidth
		frame, err := encodePart(encoder, v, v.part)
		if err != nil {
			return err
		}
		snapshot.Frame = frame
		snapshot.Width, snapshot.Height = encoder.Size()
	}
	encoder.MaxWidth = 0
	for _, object := range v.objects {
		crop, err := encodePart(encoder, v, object.part)
		if err != nil {
			return err
		}
		snapshot.ID, snapshot.Crop = object.id, crop
		image := &ObjectImage{Snapshot: snapshot, Label: object.label, Labels: v.labels}
		if s.Holder != nil {
			s.Holder.Image(image, s.deliver)
		} else {
			s.deliver(image)
		}
	}
	return nil
}

// deliver publishes and stores an image of an object. Topics are those of the network's labels: an image with another one is only stored.
func (s *Snapshots) deliver(image *ObjectImage) {
	if s.Publisher != nil && (!image.Relabelled || slices.Contains(image.Labels, image.Label)) {
		s.publish(&view{camera: image.Camera}, image.Label, image.Crop)
	}
	if s.Store != nil {
		s.Store.AddSnapshot(&image.Snapshot)
	}
}

func encodePart(encoder *jpegimage.Encoder, v *view, part image.Rectangle) ([]byte, error) {
	if err := encoder.Load(&v.pixels, part); err != nil {
		return nil, err
	}
	return encoder.JPEG()
}

// publish publishes an image, of an object with its label, unless a reload has taken the camera away since: its topics are being cleared.
func (s *Snapshots) publish(v *view, label string, jpeg []byte) {
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
		s.Publisher.Snapshot(v.camera, label, jpeg)
	}
}

// Close ends the goroutines when what waits is through. Frame must not be called any more. It is safe on one that was never opened.
func (s *Snapshots) Close() {
	if s.full != nil {
		close(s.full)
		s.done.Wait()
		s.full = nil
	}
}
