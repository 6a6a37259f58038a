package pipeline

import (
	"image"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// request is a request in flight in one slot of the predictor.
type request struct {
	frames    []capture.Frame
	streams   []*stream
	images    []engine.Image
	corners   []image.Point // of the images in their frames
	copies    [][]byte      // memory of images that are copies, by place
	submitted time.Time
	err       error // of Submit
}

func (r *request) clear() {
	r.frames = r.frames[:0]
	r.streams = r.streams[:0]
	r.images = r.images[:0]
	r.corners = r.corners[:0]
}

// add appends a camera's frame and the part of it that is the image.
func (r *request) add(camera *stream, frame capture.Frame, img engine.Image, corner image.Point) {
	r.streams = append(r.streams, camera)
	r.frames = append(r.frames, frame)
	r.images = append(r.images, img)
	r.corners = append(r.corners, corner)
}

// slowInference is the engine time from which a frame submitted ahead would wait long enough to be stale.
const slowInference = 4 * time.Millisecond

// ahead reports whether another request should be queued behind the one in flight. With a fast engine this hides the host's work. With a
// slow one the frame would age in the queue, so the mailbox keeps replacing it until the engine is free, unless the camera is lossless.
func (p *Pipeline) ahead(current *request) bool {
	if known := p.InferenceTime(); known > 0 && known < slowInference {
		return true
	}
	for _, camera := range current.streams {
		if !camera.Lossless {
			return false
		}
	}
	return true
}

// gather fills the request with the newest frames that are wanted, in the order of the schedule.
func (p *Pipeline) gather(r *request) bool {
	r.clear()
	slowdown := int(max(p.slowdown.Load(), 1))
	p.adjustRelief()
	for _, camera := range p.schedule.order(*p.streams.Load()) {
		if len(r.frames) == cap(r.frames) || p.Quota.used() {
			break
		}
		if camera.suspect && len(r.frames) > 0 {
			continue // alone, when it is the first
		}
		frame, ok := camera.Source.Take()
		if !ok {
			p.finishStopped(camera)
			continue
		}
		if decided := p.schedule.decide(camera, &frame, slowdown); decided != infer {
			camera.drop(&frame, decided)
			continue
		}
		if !p.Quota.take() { // another loop took the last one
			camera.drop(&frame, dropInterval)
			break
		}
		p.schedule.chose(camera, frame.Captured)
		part := camera.Region.of(frame.Width, frame.Height)
		r.add(camera, frame, cut(frame.Image(), part, &r.copies[len(r.frames)]), part.Min)
		if camera.suspect {
			break
		}
	}
	return len(r.frames) > 0
}

// adjustRelief slows down cameras without a deadline while frames of the others are too late.
func (p *Pipeline) adjustRelief() {
	r := &p.schedule.relief
	if !r.step(p.schedule.now()) {
		return
	}
	p.cameraSet.relief.Store(int32(r.factor()))
	p.Logger.Warn("rate changed for cameras with a deadline", "others_interval_factor", r.factor())
}

// submit starts a request. Its error is reported after the earlier requests are done.
func (p *Pipeline) submit(slot int) {
	r := &p.requests[slot]
	r.submitted = time.Now()
	g := p.guard.Load()
	err := g.enter(p).Submit(slot, r.images)
	g.leave(slot, err == nil)
	r.err = err
}

// finish waits for the slot and hands on what came out.
func (p *Pipeline) finish(slot int) {
	r := &p.requests[slot]
	var result *predict.BatchResult
	err := r.err
	if err == nil {
		g := p.guard.Load()
		result, err = g.enter(p).Wait(slot)
		g.leave(slot, false)
	}
	if p.busy == 1 && p.DeviceShare.wanted() {
		p.DeviceShare.release() // what follows is the host's
	}
	if err != nil {
		p.fail(slot, err)
		return
	}
	if slices.ContainsFunc(result.Results[:len(r.frames)], validOutput) {
		p.failures.clear()
	}
	for _, camera := range r.streams {
		camera.suspect = false
	}
	if result.Contradiction != nil {
		p.contradiction = result.Contradiction
		p.drop(r, result.Contradiction)
		return
	}
	took := max(1, int64(time.Since(r.submitted))) // 0 is that of a predictor that has not answered yet
	if before := p.inference.Load(); before > 0 {
		took = (7*before + took) / 8
	}
	p.inference.Store(took)
	p.recordStages(r, result)
	for i := range r.frames {
		for j := range result.Results[i].Detections {
			result.Results[i].Detections[j].Translate(r.corners[i])
		}
		if m := result.Results[i].Map; m != nil {
			m.Translate(r.corners[i])
		}
		p.publish(r.streams[i], &r.frames[i], &result.Results[i], result.Timing)
		r.frames[i].Release()
	}
	r.frames = r.frames[:0]
}

// finishOldest finishes the oldest request in flight.
func (p *Pipeline) finishOldest() {
	p.heartbeat.Beat()
	p.finish(p.oldest)
	p.oldest, p.busy = (p.oldest+1)%len(p.requests), p.busy-1
}

func (p *Pipeline) finishAll() {
	for p.busy > 0 {
		p.finishOldest()
	}
}

// recordStages records how long the stages up to the detections took.
func (p *Pipeline) recordStages(r *request, result *predict.BatchResult) {
	t := &result.Timing
	if p.Stages == nil || t.Done == 0 {
		return // no image of the request could be read
	}
	for i := range r.frames {
		ready := r.frames[i].Captured
		if r.frames[i].Ready > ready {
			p.Stages.Record(stage.Capture, time.Duration(r.frames[i].Ready-ready))
			ready = r.frames[i].Ready
		}
		p.Stages.Record(stage.Queue, time.Duration(t.Submitted-ready))
	}
	p.Stages.Record(stage.Waiting, time.Duration(t.Waiting()))
	p.Stages.Record(stage.Letterbox, time.Duration(t.Preprocess))
	p.Stages.Record(stage.Network, time.Duration(t.Inference))
	if t.Filter > 0 {
		p.Stages.Record(stage.Filter, time.Duration(t.Filter))
	}
	p.Stages.Record(stage.Decode, result.Decoding)
}

// fail finds out which images of a request the engine refused or lost: each one is tried alone, so that a bad one does not cost other
// cameras theirs. The slot has no work in flight.
func (p *Pipeline) fail(slot int, err error) {
	r := &p.requests[slot]
	if len(r.frames) == 1 {
		r.streams[0].suspect = true
		p.drop(r, err)
		p.failures.add(p.Logger, err)
		return
	}
	all := request{
		frames: slices.Clone(r.frames), streams: slices.Clone(r.streams), images: slices.Clone(r.images), corners: slices.Clone(r.corners),
	}
	left := 0 // first frame that has not been tried
	defer func() { releaseAll(all.frames[left:], all.streams[left:]) }()
	for i := range all.frames {
		left = i + 1
		p.heartbeat.Beat()
		r.clear()
		r.add(all.streams[i], all.frames[i], all.images[i], all.corners[i])
		p.submit(slot)
		p.finish(slot)
	}
}

// drop releases the frames of a failed request and counts them as dropped because of err.
func (p *Pipeline) drop(r *request, err error) {
	for i := range r.frames {
		r.streams[i].meter.fail(err)
		r.frames[i].Release()
	}
	r.frames = r.frames[:0]
}
