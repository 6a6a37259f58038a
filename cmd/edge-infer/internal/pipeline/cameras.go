package pipeline

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
)

// arrangement is the queues of a new set of cameras, waiting to be taken over by the frame goroutine.
type arrangement struct {
	streams []*stream
	done    chan<- struct{}
}

// Arrange makes the frame loop continue with these cameras as soon as the requests in flight are done. A camera with the name and source of
// an earlier one keeps its counters; tracks of a removed tracker are ended. It returns when removed cameras are no longer used, or when ctx
// ends. After an error about settings nothing has changed. One goroutine at a time may call Arrange and SetSettings.
func (p *Pipeline) Arrange(ctx context.Context, cameras []Camera) error {
	streams, err := p.arrange(*p.streams.Load(), cameras, p.Model().Metadata.Labels)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	p.cameras.Store(&arrangement{streams, done})
	p.Wakeup.Signal()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rearrange takes over an arrangement. Nothing is in flight.
func (p *Pipeline) rearrange(change *arrangement) {
	old := *p.streams.Load()
	for i, l := range change.streams {
		if same := find(old, l.Name, l.Source); same != nil {
			change.streams[i].share = same.share
		}
	}
	for _, camera := range old {
		if !slices.ContainsFunc(change.streams, func(l *stream) bool { return l.Name == camera.Name && l.Tracker == camera.Tracker }) {
			p.end(camera)
		}
	}
	p.streams.Store(&change.streams)
	p.DeviceShare.weigh(change.streams)
	close(change.done)
}

// arrange makes the queues of cameras, which take over the counters of the old ones with the same name and source. labels are the model's.
func (p *Pipeline) arrange(old []*stream, cameras []Camera, labels []string) ([]*stream, error) {
	streams := make([]*stream, len(cameras))
	for i, camera := range cameras {
		settings := Settings{Detect: true, Confidence: p.Confidence, Interval: 1}
		if camera.Settings != nil {
			settings = *camera.Settings
		}
		if err := p.complete(&settings, labels); err != nil {
			return nil, fmt.Errorf("camera %s: %w", camera.Name, err)
		}
		l := &stream{Camera: camera, settings: new(atomic.Pointer[Settings])}
		l.settings.Store(&settings)
		if same := find(old, camera.Name, camera.Source); same != nil {
			l.meter = same.meter
			l.left = same.left
		} else {
			l.meter = newMeter()
			l.left = new(atomic.Int64)
		}
		streams[i] = l
	}
	return streams, nil
}

func find(streams []*stream, name string, source Source) *stream {
	for _, l := range streams {
		if l.Name == name && l.Source == source {
			return l
		}
	}
	return nil
}
