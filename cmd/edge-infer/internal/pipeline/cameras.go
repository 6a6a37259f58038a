package pipeline

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
)

// Arrangement is what the frame loop can be told anew while it runs.
type Arrangement struct {
	Cameras    []Camera
	Confidence float32 // as in Pipeline
}

// cameraChange is an arrangement that waits to be taken over.
type cameraChange struct {
	Arrangement
	done chan<- struct{}
}

// Arrange has the frame loop go on with another arrangement as soon as what is in flight is through. A camera that was there before, with
// the same name and source, keeps its counters, and its settings but for those that the arrangement changes; tracks of a follower that is
// gone are ended. It returns when the cameras that are gone are not used any more, or when ctx ends.
func (p *Pipeline) Arrange(ctx context.Context, a Arrangement) error {
	done := make(chan struct{})
	p.cameras.Store(&cameraChange{a, done})
	p.Wakeup.Signal()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// rearrange puts a change in place. Nothing is in flight.
func (p *Pipeline) rearrange(change *cameraChange) {
	old := *p.lanes.Load()
	lanes := p.arrange(old, change.Cameras, change.Confidence)
	p.Confidence = change.Confidence
	for _, camera := range old {
		if !slices.ContainsFunc(lanes, func(l *lane) bool { return l.Name == camera.Name && l.Tracker == camera.Tracker }) {
			p.end(camera)
		}
	}
	p.lanes.Store(&lanes)
	close(change.done)
}

// arrange makes the lanes of cameras, out of the old ones where a camera has stayed.
func (p *Pipeline) arrange(old []*lane, cameras []Camera, reported float32) []*lane {
	lanes := make([]*lane, len(cameras))
	for i, camera := range cameras {
		same := slices.IndexFunc(old, func(l *lane) bool { return l.Name == camera.Name && l.Source == camera.Source })
		if same < 0 {
			lanes[i] = &lane{Camera: camera, meter: newMeter(), settings: new(atomic.Pointer[Settings]), left: new(atomic.Int64)}
			lanes[i].settings.Store(&Settings{
				Detect: true, Confidence: cmp.Or(camera.Confidence, reported), Interval: max(camera.Interval, 1),
			})
			continue
		}
		before := old[same]
		lanes[i] = before
		if camera == before.Camera && reported == p.Confidence {
			continue
		}
		lanes[i] = &lane{Camera: camera, meter: before.meter, settings: before.settings, left: before.left, turn: before.turn}
		lanes[i].adjust(func(s *Settings) {
			if now := cmp.Or(camera.Confidence, reported); now != cmp.Or(before.Confidence, p.Confidence) {
				s.Confidence = now
			}
			if camera.Interval != before.Interval {
				s.Interval = max(camera.Interval, 1)
			}
		})
	}
	p.DeviceShare.weigh(lanes)
	return lanes
}
