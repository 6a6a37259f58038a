// Package live streams images, detections and events to viewers of the web page. It copies from the frame loop and never blocks it.
package live

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

// Feed passes frames to viewers. Set the exported fields, call Open, register it as a sink of the pipeline, and call Run. Frame is called
// by the frame goroutine, all other methods by any goroutine.
type Feed struct {
	// FrameRate is the maximum frame rate per camera, less with many cameras; ImageWidth is the maximum image width in pixels.
	FrameRate, ImageWidth int
	// Viewers is the maximum number of open streams.
	Viewers int
	// Write is the timeout for one part of a stream; slower viewers are disconnected. After Heartbeat of silence something is written, to
	// detect viewers that have disconnected.
	Write, Heartbeat time.Duration
	// Memory bounds the messages and images on their way to viewers; those that do not fit are dropped.
	Memory *inflight.Budget
	// Known reports whether a camera of this name exists.
	Known func(camera string) bool
	// Units returns the newest access units of a camera; nil if it has none.
	Units  func(camera string) *capture.Ring
	Logger *slog.Logger

	recorder *recorder
	fresh    broadcast     // signalled at every image
	encoded  atomic.Uint64 // images
	missed   atomic.Uint64 // images skipped because the encoder was busy
	watched  atomic.Pointer[subscriptions]

	mutex            sync.Mutex
	stopping         bool // no new streams are accepted
	viewers          int
	detectionViewers int
	previews         map[string]*preview
	parts            sync.WaitGroup // viewers and encoders
	buffers          sync.Pool      // of WebSockets
}

var _ pipeline.Sink = (*Feed)(nil)

// subscriptions is an immutable snapshot of what viewers have subscribed to.
type subscriptions struct {
	detections bool
	previews   map[string]*preview // by camera
	pause      time.Duration       // minimum between two images of a camera
}

// Open prepares the feed for frames and viewers.
func (f *Feed) Open() {
	if f.Memory == nil {
		f.Memory = &inflight.Budget{}
	}
	f.recorder = newRecorder(f.Memory)
	f.previews = map[string]*preview{}
}

// Run delivers messages until ctx ends.
func (f *Feed) Run(ctx context.Context) { f.recorder.run(ctx) }

// Stop rejects new viewers and waits until the others have left.
func (f *Feed) Stop() {
	f.mutex.Lock()
	f.stopping = true
	f.mutex.Unlock()
	f.parts.Wait()
}

// Stats counts viewers and images. Counters run from the start.
type Stats struct {
	Viewers        int    // open streams
	Images, Missed uint64 // encoded, and skipped because the encoder was busy
	Lost           uint64 // messages dropped because a viewer was too slow
}

// Stats returns the current counters.
func (f *Feed) Stats() Stats {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return Stats{f.viewers, f.encoded.Load(), f.missed.Load(), f.recorder.lost.Load()}
}

// Frame implements pipeline.Sink. Without viewers it costs an atomic load. Otherwise it copies the detections of every frame and the pixels
// at FrameRate. Slow viewers miss frames.
func (f *Feed) Frame(in *pipeline.Result) {
	if in.Events != nil && len(in.Events.Events) > 0 {
		f.recorder.addEvents(in)
	}
	watched := f.watched.Load()
	if watched == nil {
		return
	}
	if watched.detections { // even without detections
		f.recorder.addFrame(in)
	}
	if p := watched.previews[in.Camera]; p != nil && in.Frame != nil {
		p.take(in, watched.pause)
	}
}

// maxImageRate is the maximum number of images encoded per second, of all cameras together.
const maxImageRate = 48

var (
	errTooMany  = errors.New("too many viewers")
	errStopping = errors.New("the server is stopping")
)

// subscribe adds a stream of detections or of images of cameras. leave must be called when it ends.
func (f *Feed) subscribe(detections bool, cameras []string) (watched []*preview, leave func(), err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.stopping {
		return nil, nil, errStopping
	}
	if f.viewers >= f.Viewers {
		return nil, nil, errTooMany
	}
	f.viewers++
	f.parts.Add(1)
	if detections {
		f.detectionViewers++
	}
	for _, name := range cameras {
		p := f.previews[name]
		if p == nil {
			p = f.startPreview(name)
		}
		p.viewers++
		watched = append(watched, p)
	}
	f.updateSubscriptions()
	return watched, func() {
		defer f.parts.Done()
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.viewers--
		if detections {
			f.detectionViewers--
		}
		for _, p := range watched {
			if p.viewers--; p.viewers == 0 {
				p.stop()
				delete(f.previews, p.camera)
			}
		}
		f.updateSubscriptions()
	}, nil
}

// updateSubscriptions publishes the subscriptions to the frame goroutine. The lock is held.
func (f *Feed) updateSubscriptions() {
	if f.viewers == 0 {
		f.watched.Store(nil)
		return
	}
	f.watched.Store(&subscriptions{
		detections: f.detectionViewers > 0, previews: maps.Clone(f.previews),
		pause: max(time.Second/time.Duration(f.FrameRate), time.Duration(len(f.previews))*time.Second/maxImageRate),
	})
}
