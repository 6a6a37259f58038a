package pipeline

import "github.com/edge-infer/edge-infer/capture"

// EndObjects makes the frame loop end all objects of a camera whose images have stopped. Frames captured before are still processed. It may
// be called from any goroutine; an unknown camera is ignored.
func (p *Pipeline) EndObjects(camera string) {
	if found := p.stream(camera); found != nil {
		found.stopped.Store(capture.Monotonic())
		p.Wakeup.Signal()
	}
}

// finishStopped ends the objects of a camera whose images have stopped, once its last frame is done: none waits and none is in flight.
func (p *Pipeline) finishStopped(camera *stream) {
	at := camera.stopped.Load()
	if at == 0 {
		return
	}
	for i := range p.requests {
		for j := range p.requests[i].frames {
			if p.requests[i].streams[j].stopped == camera.stopped {
				return
			}
		}
	}
	p.finishAt(camera, at)
}
