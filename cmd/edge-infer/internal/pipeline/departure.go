package pipeline

import "github.com/edge-infer/edge-infer/capture"

// EndObjects makes the frame loop end all objects of a camera whose images have stopped. Frames captured before are still processed. It may
// be called from any goroutine; an unknown camera is ignored.
func (p *Pipeline) EndObjects(camera string) {
	if found := p.stream(camera); found != nil {
		found.left.Store(capture.Monotonic())
		p.Wakeup.Signal()
	}
}

// departed ends a camera that has left and has no frame more from before: none waits, and none of it is in flight.
func (p *Pipeline) departed(camera *stream) {
	left := camera.left.Load()
	if left == 0 {
		return
	}
	for i := range p.requests {
		for j := range p.requests[i].frames {
			if p.requests[i].streams[j].left == camera.left {
				return
			}
		}
	}
	p.depart(camera, left)
}

// returned ends the objects that were seen before the camera left, if this frame was captured after.
func (p *Pipeline) returned(camera *stream, frame *capture.Frame) {
	if left := camera.left.Load(); left != 0 && frame.Captured > left {
		p.depart(camera, left)
	}
}

func (p *Pipeline) depart(camera *stream, left int64) {
	p.end(camera)
	camera.left.CompareAndSwap(left, 0) // it may have left again
}
