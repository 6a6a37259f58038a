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

// finishEarlier ends the objects that were seen before the images stopped, if this frame was captured afterwards.
func (p *Pipeline) finishEarlier(camera *stream, frame *capture.Frame) {
	if at := camera.stopped.Load(); at != 0 && frame.Captured > at {
		p.finishAt(camera, at)
	}
}

func (p *Pipeline) finishAt(camera *stream, at int64) {
	p.finishObjects(camera)
	camera.stopped.CompareAndSwap(at, 0) // it may have stopped again
}

// finishObjects makes the sinks end the objects of a camera whose images have stopped.
func (p *Pipeline) finishObjects(camera *stream) {
	if camera.Tracker == nil {
		return
	}
	result := Result{Camera: camera.Name, Labels: p.inferred.Labels, Tracker: camera.Tracker, Lossless: camera.Lossless}
	result.Seq, result.Time, result.Width, result.Height = camera.Tracker.seq, camera.Tracker.last, camera.Tracker.width, camera.Tracker.height
	result.Events = camera.Tracker.finish()
	if result.Events == nil {
		return
	}
	if p.secondary != nil {
		p.secondary.collect(&result, &p.attributes)
	}
	for _, sink := range p.Sinks {
		sink.Frame(&result)
	}
}
