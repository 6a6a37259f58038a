package pipeline

import "github.com/edge-infer/edge-infer/capture"

// Left has the frame loop end everything that a camera was seen to show: its images have stopped. Frames that were captured before are
// still looked at; what comes later begins anew. It may be called from any goroutine; a camera that the loop has not is left alone.
func (p *Pipeline) EndObjects(camera string) {
	if found := p.lane(camera); found != nil {
		found.left.Store(capture.Monotonic())
		p.Wakeup.Signal()
	}
}

// departed ends a camera that has left and has no frame more from before: none waits, and none of it is in flight.
func (p *Pipeline) departed(camera *lane) {
	left := camera.left.Load()
	if left == 0 {
		return
	}
	for i := range p.requests {
		for j := range p.requests[i].frames {
			if p.requests[i].lanes[j].left == camera.left {
				return
			}
		}
	}
	p.depart(camera, left)
}

// returned ends what a camera that has left showed before this frame, which was captured since.
func (p *Pipeline) returned(camera *lane, frame *capture.Frame) {
	if left := camera.left.Load(); left != 0 && frame.Captured > left {
		p.depart(camera, left)
	}
}

func (p *Pipeline) depart(camera *lane, left int64) {
	p.end(camera)
	camera.left.CompareAndSwap(left, 0) // it may have left again
}
