package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/engine"
)

// stream is the state of one camera in the loop.
type stream struct {
	Camera
	meter     *meter
	settings  *atomic.Pointer[Settings]
	stopped   *atomic.Int64 // when the images stopped, CLOCK_MONOTONIC, until the objects are ended; else 0
	suspect   bool          // the engine has refused its newest image: the next one goes alone; frame goroutine only
	warned    bool          // of detections over the limit; frame goroutine only
	share     fairShare
	concealer *concealer // nil if nothing is hidden; frame goroutine only
}

// cameraSet is the cameras of a loop with what may be set and read of them while it runs, by any goroutine.
type cameraSet struct {
	confidence, minScore float32 // see Pipeline; set by Open

	streams  atomic.Pointer[[]*stream]
	model    atomic.Pointer[engine.Model]
	slowdown atomic.Int32 // multiplies the time between two frames of every camera; 0 is 1
	relief   atomic.Int32 // by how much the schedule slows down cameras without a deadline; 0 is 1
}

// Model returns the current model. It may be called after Open.
func (c *cameraSet) Model() engine.Model { return *c.model.Load() }

// SetSlowdown multiplies the time between two frames of every camera by factor, 1 for full speed.
func (c *cameraSet) SetSlowdown(factor int) { c.slowdown.Store(int32(factor)) }

// arrangement is a new set of cameras that waits for the frame goroutine.
type arrangement struct {
	streams []*stream
	done    chan<- struct{}
}

// Arrange makes the frame loop continue with these cameras as soon as the requests in flight are done. A camera with the name and source of
// an earlier one keeps its counters; tracks of a removed tracker are ended. It returns when removed cameras are no longer used, or when ctx
// ends. After an error about settings nothing has changed. One goroutine at a time may call Arrange and SetSettings.
func (p *Pipeline) Arrange(ctx context.Context, cameras []Camera) error {
	streams, err := p.newStreams(*p.streams.Load(), cameras, p.Model().Metadata.Labels)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	p.arrangement.Store(&arrangement{streams, done})
	return p.await(ctx, done)
}

// setStreams puts an arrangement in place. Nothing is in flight.
func (p *Pipeline) setStreams(change *arrangement) {
	old := *p.streams.Load()
	for i, s := range change.streams {
		if same := find(old, s.Name, s.Source); same != nil {
			change.streams[i].share = same.share
		}
	}
	for _, camera := range old {
		if !slices.ContainsFunc(change.streams, func(s *stream) bool { return s.Name == camera.Name && s.Tracker == camera.Tracker }) {
			p.finishObjects(camera)
		}
	}
	p.streams.Store(&change.streams)
	p.DeviceShare.weigh(change.streams)
	close(change.done)
}

// newStreams makes the streams of cameras, which take over the counters of old ones with the same name and source. labels are the
// model's.
func (c *cameraSet) newStreams(old []*stream, cameras []Camera, labels []string) ([]*stream, error) {
	streams := make([]*stream, len(cameras))
	for i, camera := range cameras {
		settings := Settings{Detect: true, Confidence: c.confidence, Interval: 1}
		if camera.Settings != nil {
			settings = *camera.Settings
		}
		if err := c.complete(&settings, labels); err != nil {
			return nil, fmt.Errorf("camera %s: %w", camera.Name, err)
		}
		concealer, err := newConcealer(camera.Privacy, camera.Region, labels)
		if err != nil {
			return nil, fmt.Errorf("camera %s: %w", camera.Name, err)
		}
		s := &stream{Camera: camera, settings: new(atomic.Pointer[Settings]), concealer: concealer}
		s.settings.Store(&settings)
		if same := find(old, camera.Name, camera.Source); same != nil {
			s.meter = same.meter
			s.stopped = same.stopped
		} else {
			s.meter = newMeter()
			s.stopped = new(atomic.Int64)
		}
		streams[i] = s
	}
	return streams, nil
}

func find(streams []*stream, name string, source Source) *stream {
	for _, s := range streams {
		if s.Name == name && s.Source == source {
			return s
		}
	}
	return nil
}
