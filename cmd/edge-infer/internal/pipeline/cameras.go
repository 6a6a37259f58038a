package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
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
func (p *Pipeline) newStreams(old []*stream, cameras []Camera, labels []string) ([]*stream, error) {
	streams := make([]*stream, len(cameras))
	for i, camera := range cameras {
		settings := Settings{Detect: true, Confidence: p.Confidence, Interval: 1}
		if camera.Settings != nil {
			settings = *camera.Settings
		}
		if err := p.complete(&settings, labels); err != nil {
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
