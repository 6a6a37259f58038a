package pipeline

import (
	"context"
	"slices"
)

// cameraChange is a list of cameras that waits to be taken over.
type cameraChange struct {
	cameras []Camera
	done    chan<- struct{}
}

// SetCameras has the frame loop go on with these cameras as soon as what is in flight is through. A camera that was there before, with the same
// name, source and follower, keeps its counters and settings; tracks of one that is gone are ended. It returns when the cameras that are gone
// are not used any more, or when ctx ends.
func (p *Pipeline) SetCameras(ctx context.Context, cameras []Camera) error {
	done := make(chan struct{})
	p.cameras.Store(&cameraChange{cameras, done})
	p.awaken()
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
	lanes := p.arrange(old, change.cameras)
	for _, camera := range old {
		if !slices.Contains(lanes, camera) {
			p.end(camera)
		}
	}
	p.lanes.Store(&lanes)
	p.next = 0
	close(change.done)
}

// arrange makes the lanes of cameras, out of the old ones where a camera has stayed.
func (p *Pipeline) arrange(old []*lane, cameras []Camera) []*lane {
	lanes := make([]*lane, len(cameras))
	for i := range cameras {
		same := slices.IndexFunc(old, func(l *lane) bool {
			return l.Name == cameras[i].Name && l.Source == cameras[i].Source && l.Follower == cameras[i].Follower
		})
		if same >= 0 {
			lanes[i] = old[same]
			continue
		}
		lanes[i] = &lane{Camera: cameras[i], meter: newMeter()}
		lanes[i].settings.Store(&Settings{Detect: true, Threshold: p.Confidence, Interval: max(cameras[i].Interval, 1)})
	}
	return lanes
}
