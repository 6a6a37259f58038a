package pipeline

import (
	"sync"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// SecondaryNetworks classify tracked objects; *cascade.Secondary implements it. They work asynchronously: Process takes the objects of a
// frame and returns the tracks with a new attribute since the camera's last frame. The result is valid until the next call.
type SecondaryNetworks interface {
	Process(*cascade.Frame) (changed []uint64)
	Attributes(camera string, track uint64) []postprocess.Attribute
	Embedding(camera string, track uint64) []float32
}

// SecondaryStage runs secondary networks between tracking and zones. Several frame loops may share one.
type SecondaryStage struct {
	Networks SecondaryNetworks
	// Labels are the class names of the model that the networks were opened for. Objects of other models are left out.
	Labels []string

	mu          sync.Mutex
	frame       cascade.Frame
	tracker     *Tracker // of the frame
	onEmbedding func(track uint64, vector []float32)
}

// process passes the tracks of a frame to the networks, and their new attributes and embeddings to the tracker and its zones. A video waits
// for the networks.
func (s *SecondaryStage) process(in *Result, t *Tracker, img *engine.Image) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracker = t
	if s.onEmbedding == nil {
		s.onEmbedding = func(track uint64, vector []float32) { s.tracker.tracker.UpdateEmbedding(track, vector) } // one for all frames
	}
	s.frame = cascade.Frame{Camera: in.Camera, Time: in.Time, Image: *img, Tracks: in.Tracks, Wait: in.Lossless, OnEmbedding: s.onEmbedding}
	for _, track := range s.Networks.Process(&s.frame) {
		t.analytics.MarkChanged(track)
	}
}

// collect copies the attributes of a frame's tracks and events into the result.
func (s *SecondaryStage) collect(in *Result, to *Attributes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to.objects = to.objects[:0]
	for i := range in.Tracks {
		to.add(in.Tracks[i].ID).attributes(s.Networks.Attributes(in.Camera, in.Tracks[i].ID))
	}
	if in.Events != nil {
		for i := range in.Events.Events {
			track := in.Events.Events[i].Object.Track
			object := to.add(track)
			object.attributes(s.Networks.Attributes(in.Camera, track))
			object.vector = append(object.vector[:0], s.Networks.Embedding(in.Camera, track)...)
		}
	}
	in.Attributes = to
}

// Attributes holds the attributes of the objects of one frame. A nil *Attributes is empty.
type Attributes struct{ objects []objectAttributes }

type objectAttributes struct {
	track  uint64
	values []postprocess.Attribute
	vector []float32
}

// Of returns the attributes of an object.
func (a *Attributes) Of(track uint64) []postprocess.Attribute {
	if object := a.find(track); object != nil {
		return object.values
	}
	return nil
}

// Embedding returns the embedding of an object that has an event in this frame, nil if it is not to be published.
func (a *Attributes) Embedding(track uint64) []float32 {
	if object := a.find(track); object != nil {
		return object.vector
	}
	return nil
}

func (a *Attributes) find(track uint64) *objectAttributes {
	if a == nil {
		return nil
	}
	for i := range a.objects {
		if a.objects[i].track == track {
			return &a.objects[i]
		}
	}
	return nil
}

// add returns the entry of an object, with the memory of earlier frames.
func (a *Attributes) add(track uint64) *objectAttributes {
	if object := a.find(track); object != nil {
		return object
	}
	if n := len(a.objects); n < cap(a.objects) {
		a.objects = a.objects[:n+1]
	} else {
		a.objects = append(a.objects, objectAttributes{})
	}
	object := &a.objects[len(a.objects)-1]
	object.track = track
	object.values = object.values[:0]
	object.vector = object.vector[:0]
	return object
}

func (o *objectAttributes) attributes(values []postprocess.Attribute) {
	o.values = append(o.values[:0], values...)
}
