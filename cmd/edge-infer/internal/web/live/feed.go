// Package live shows what the cameras see and what is found in it while it happens: images, detections and events, to as many viewers as
// there may be. It copies out of the frame loop, which never waits for anybody here.
package live

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// Feed takes frames and gives them to viewers. Set the exported fields, call Open, have it be a sink of the pipeline, and call Run. Frame
// belongs to the frame goroutine, everything else may be called from any.
type Feed struct {
	// ImageRate is how many images a second of each camera are shown at most, less of many cameras; ImageWidth is their width in pixels
	// at most.
	FrameRate, ImageWidth int
	// Viewers is how many streams are served at a time.
	Viewers int
	// Write is how long a viewer may take over one piece of a stream; one that needs longer is dropped. After Heartbeat of silence something
	// is written, so that a viewer who has gone is noticed.
	Write, Heartbeat time.Duration
	// Known reports whether there is a camera of that name.
	Known  func(camera string) bool
	Logger *slog.Logger

	recorder *recorder
	fresh    broadcast     // signalled at every image
	encoded  atomic.Uint64 // images
	missed   atomic.Uint64 // images not taken because the encoder was at work
	watched  atomic.Pointer[subscriptions]

	mutex            sync.Mutex
	stopping         bool // no stream may begin any more
	viewers          int
	detectionViewers int
	previews         map[string]*preview
	encoders         sync.WaitGroup
}

var _ pipeline.Sink = (*Feed)(nil)

// subscriptions are what somebody looks at. They are never changed, only replaced.
type subscriptions struct {
	detections bool
	previews   map[string]*preview // by camera
	pause      time.Duration       // between two images of a camera
}

// Open makes the feed ready for frames and viewers.
func (f *Feed) Open() {
	f.recorder = newRecorder()
	f.previews = map[string]*preview{}
}

// Run hands messages on until ctx ends.
func (f *Feed) Run(ctx context.Context) { f.recorder.run(ctx) }

// Stop waits until the encoders have ended, for which the viewers must have left. None can come any more.
func (f *Feed) Stop() {
	f.mutex.Lock()
	f.stopping = true
	f.mutex.Unlock()
	f.encoders.Wait()
}

// Stats is how a feed does. Counters run from the start.
type Stats struct {
	Viewers        int    // streams that are open
	Images, Missed uint64 // encoded, and not taken because the encoder was at work
	Lost           uint64 // messages that a viewer did not take in time
}

// Stats is how it does now.
func (f *Feed) Stats() Stats {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return Stats{f.viewers, f.encoded.Load(), f.missed.Load(), f.recorder.lost.Load()}
}

// Frame implements pipeline.Sink. With nobody looking it costs an atomic load. Otherwise it copies: the detections of every frame, the
// pixels of a few a second. Who is behind misses frames; nobody is waited for.
func (f *Feed) Frame(in *pipeline.Result) {
	if in.Events != nil && len(in.Events.Events) > 0 {
		f.recorder.addEvents(in)
	}
	watched := f.watched.Load()
	if watched == nil {
		return
	}
	if watched.detections { // also when the images have stopped and nothing is seen any more
		f.recorder.addFrame(in)
	}
	if p := watched.previews[in.Camera]; p != nil && in.Frame != nil {
		p.take(in, watched.pause)
	}
}

// maxImageRate is how many images a second are encoded of all cameras together.
const maxImageRate = 48

var (
	errTooMany  = errors.New("too many viewers")
	errStopping = errors.New("the server stops")
)

// subscribe makes room for one more stream, which looks at detections or at the images of cameras. leave must be called when it ends.
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

// updateSubscriptions has the frame goroutine know what is looked at. The lock is held.
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
