// Package pipeline is the frame loop: it takes the newest frame of every camera, keeps the predictor's slots busy, tracks the detections
// and passes the results to sinks. A single goroutine does all of it; nothing but the predictor allocates or blocks.
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"image"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Source is where the newest frame of a camera is taken; *capture.Camera is one. Take reports false when there is none.
type Source interface {
	Take() (capture.Frame, bool)
}

// Wakeup wakes the loop; *capture.Wakeup is one.
type Wakeup interface {
	Signal()
	Wait() // until it has been rung since the last Wait
}

// Predictor turns images into detections; every predict.Predictor is one.
type Predictor interface {
	Model() predict.Model
	Slots() int
	Submit(slot int, images []engine.Image) error
	Wait(slot int) (*predict.BatchResult, error)
}

// Camera is one camera of the loop.
type Camera struct {
	Name   string
	Source Source
	Scheduling
	// Settings are in force for the camera until SetSettings or Arrange replaces them; nil is every class of every frame with the
	// pipeline's Confidence.
	Settings *Settings
	// Region is the part of its images that the predictor is given; detections are in pixels of the whole image all the same.
	Region Region
	// Lossless makes the camera wait until its frames are taken.
	Lossless bool
	// Tracker tracks the camera's objects; nil for detections only.
	Tracker *Tracker
	// MapStats summarizes the dense maps of segmentation and depth networks; nil for other networks.
	MapStats *zone.MapStats
}

// stream is the state of one camera in the loop.
type stream struct {
	Camera
	meter    *meter
	settings *atomic.Pointer[Settings]
	left     *atomic.Int64 // when the camera's images stopped, CLOCK_MONOTONIC, until that is seen to; else 0
	suspect  bool          // the engine has refused its newest image: the next one goes alone; frame goroutine only
	warned   bool          // of detections over the limit; frame goroutine only
	share    fairShare
}

// Pipeline is the frame loop of one predictor. The exported fields are set before Open and not changed by others after.
type Pipeline struct {
	Predictor Predictor
	// Cameras are the initial cameras; Arrange changes them.
	Cameras []Camera
	Sinks   []Sink
	// Confidence is the lowest score of a reported detection, MinScore that of a decoded one, which the tracker may use.
	Confidence, MinScore float32
	// Wakeup is signalled when a camera has a frame, and by the pipeline itself; nil for a *capture.Wakeup of its own.
	Wakeup Wakeup
	// Thread is called by a thread that from then on carries out Run and nothing else, so that it may have a scheduling of its own, once a
	// predictor waits for a device in the caller's thread; the thread calls what it returns in every round. Nil for none.
	SetupThread func() (review func())
	// DeviceShare is the loop's place among those that share its device; nil where it has one alone.
	DeviceShare *DeviceShare
	// Quota ends the loop after a number of frames; nil for no limit.
	Quota *Quota
	// Stages take the time of each stage; nil for none. Several loops may have the same.
	Stages *stage.Times
	// Secondary are networks that classify tracked objects; nil for none.
	Secondary *SecondaryStage
	// OnFault is called by the frame goroutine when the predictor is at fault: for ten seconds it has failed or its
	// output was invalid, without a right one in between; or its output contradicts the recognised layout from the start, in which case the
	// error is a *predict.Contradiction. Frames are then lost until Replace. With nil,
	// Run returns the error.
	OnFault func(error)
	// Fault is why the predictor cannot be used: frames are lost from the start until Replace. Nil for none.
	Fault  error
	Logger *slog.Logger

	streams     atomic.Pointer[[]*stream]
	slowdown    atomic.Int32 // multiplies the time between two frames of every camera; 0 is 1
	relief      atomic.Int32 // the schedule's, of cameras without a deadline
	cameras     atomic.Pointer[arrangement]
	started     time.Time
	first       atomic.Int64 // nanoseconds from Open to the first inferred frame
	replacement atomic.Pointer[replacement]
	model       atomic.Pointer[engine.Model]
	inference   atomic.Int64 // smoothed nanoseconds from Submit to Wait
	heartbeat   Heartbeat

	// Frame goroutine only.
	requests []request
	oldest   int // slot of the oldest request in flight
	busy     int // requests in flight
	schedule schedule
	inferred Result
	// secondary is Secondary if it knows the predictor's classes; attributes holds its results.
	secondary  *SecondaryStage
	attributes Attributes
	failures   failures
	review     func() // of the loop's thread; nil while it has none of its own
	// contradiction is set when the predictor's output means nothing; fault when the predictor is no longer used.
	contradiction *predict.Contradiction
	fault         error
}

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

// giveUp is how long every request may fail before the predictor is at fault.
const giveUp = 10 * time.Second

// replacement is a predictor that waits to take over.
type replacement struct {
	predictor Predictor
	done      chan<- struct{}
}

// Replace makes the frame loop continue with another predictor as soon as the requests in flight are done; no frame is lost. It returns
// when the old predictor is no longer used, or when ctx ends. Buffers of the old one stay in use until the cameras release them.
func (p *Pipeline) Replace(ctx context.Context, next Predictor) error {
	done := make(chan struct{})
	p.replacement.Store(&replacement{next, done})
	p.Wakeup.Signal()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start ends the Fault that the loop was opened with: it goes on with a predictor, perhaps with other classes, and with cameras for it. It
// returns as Arrange does. A predictor that was replaced before is not one for Start.
func (p *Pipeline) Start(ctx context.Context, next Predictor, cameras []Camera) error {
	model := next.Model()
	streams, err := p.arrange(*p.streams.Load(), cameras, model.Metadata.Labels)
	if err != nil {
		return err
	}
	p.cameras.Store(&arrangement{streams, make(chan struct{})}) // before the predictor, which must not infer for the cameras of before
	return p.Replace(ctx, next)
}

// takeOver puts the replacement in place. Nothing is in flight.
func (p *Pipeline) takeOver(r *replacement) {
	p.Predictor = r.predictor
	p.contradiction, p.fault = nil, nil
	p.failures.clear()
	p.inference.Store(0)
	p.prepare()
	p.settle()
	close(r.done)
}

// prepare allocates everything the frame loop needs.
func (p *Pipeline) prepare() {
	model := p.Predictor.Model()
	p.model.Store(&model.Model)
	p.inferred.Labels = model.Metadata.Labels
	p.secondary = nil
	if p.Secondary != nil && slices.Equal(p.inferred.Labels, p.Secondary.Labels) {
		p.secondary = p.Secondary
	}
	batch := model.MaxBatch
	p.requests = make([]request, p.Predictor.Slots())
	for i := range p.requests {
		p.requests[i] = request{
			frames: make([]capture.Frame, 0, batch), streams: make([]*stream, 0, batch), images: make([]engine.Image, 0, batch),
		}
		p.requests[i].corners, p.requests[i].copies = make([]image.Point, 0, batch), make([][]byte, batch)
	}
}

// Open checks the fields and makes the loop ready; Stats may be called from then on.
func (p *Pipeline) Open() error {
	if p.Predictor == nil || len(p.Cameras) == 0 {
		return errors.New("pipeline: needs a predictor and a camera")
	}
	if p.Logger == nil {
		p.Logger = slog.Default()
	}
	p.started = time.Now()
	if p.Wakeup == nil {
		p.Wakeup = new(capture.Wakeup)
	}
	p.DeviceShare.notify(p.Wakeup)
	p.fault = p.Fault
	p.prepare()
	streams, err := p.arrange(nil, p.Cameras, p.Model().Metadata.Labels)
	if err != nil {
		return err
	}
	p.streams.Store(&streams)
	p.DeviceShare.weigh(streams)
	p.inferred.Detections = make([]postprocess.Detection, 0, 512)
	p.schedule = schedule{now: capture.Monotonic}
	p.inferred.Stages = p.Stages
	return nil
}

// Run processes frames until ctx ends, or until ended is closed and every frame captured before is done. The error is that of a predictor
// at fault, see OnFault. It finishes the requests in flight before it returns.
func (p *Pipeline) Run(ctx context.Context, ended <-chan struct{}) error {
	defer p.listen(ctx, ended)()
	p.settle()
	defer func() {
		defer p.heartbeat.Rest()
		p.finishAll()
		p.DeviceShare.end()
		for _, camera := range *p.streams.Load() {
			p.end(camera)
		}
	}()
	for ctx.Err() == nil {
		p.heartbeat.Beat()
		if p.review != nil {
			p.review()
		}
		if err := p.change(); err != nil {
			return err
		}
		over := closed(ended) // read before the mailboxes, so that no frame comes between
		if p.fault != nil {
			p.discard()
			if over {
				return p.fault
			}
			p.wait()
			continue
		}
		if p.busy == len(p.requests) || p.busy > 0 && (p.DeviceShare.wanted() || !p.ahead(&p.requests[p.oldest])) {
			p.finishOldest()
			continue
		}
		if !p.DeviceShare.take() { // nothing is in flight
			p.wait()
			continue
		}
		slot := (p.oldest + p.busy) % len(p.requests)
		if p.gather(&p.requests[slot]) {
			p.submit(slot)
			p.busy++
			continue
		}
		if p.busy == 0 {
			p.DeviceShare.end()
		}
		switch {
		case p.busy > 0:
			p.finishOldest()
		case over:
			return nil
		default:
			p.wait()
		}
	}
	return nil
}

// wait waits until something has happened.
func (p *Pipeline) wait() {
	p.heartbeat.Rest()
	p.Wakeup.Wait()
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

// change stops using a predictor that is at fault, and puts another predictor and other cameras in place. The error ends Run.
func (p *Pipeline) change() error {
	if p.fault == nil {
		p.fault = p.newFault()
		if p.fault != nil {
			if p.OnFault == nil {
				return p.fault
			}
			p.finishAll()
			p.DeviceShare.end()
			p.OnFault(p.fault)
		}
	}
	if next := p.replacement.Load(); next != nil {
		p.finishAll()
		p.takeOver(next)
		p.replacement.CompareAndSwap(next, nil)
		p.oldest = 0
	}
	if change := p.cameras.Load(); change != nil {
		p.finishAll()
		p.rearrange(change)
		p.cameras.CompareAndSwap(change, nil)
	}
	return nil
}

// newFault returns why the predictor can no longer be used, nil while it can.
func (p *Pipeline) newFault() error {
	switch {
	case p.contradiction != nil:
		return p.contradiction
	case p.failures.exceeded(giveUp):
		return fmt.Errorf("engine failed for %v: %w", giveUp, p.failures.last)
	}
	return nil
}

// discard releases the frames of every camera while the predictor is at fault, and counts them as lost.
func (p *Pipeline) discard() {
	for _, camera := range *p.streams.Load() {
		frame, ok := camera.Source.Take()
		if !ok {
			p.departed(camera)
			continue
		}
		frame.Release()
		camera.meter.fail(p.fault)
	}
}

// settle locks the loop to its thread if that helps. Backends that compute in goroutines of their own share a thread with an ordinary loop.
// A locked loop would pass every frame to another thread and wait twice for a busy CPU.
func (p *Pipeline) settle() {
	if p.SetupThread == nil || p.review != nil || !p.Model().BlocksThread {
		return
	}
	// never unlocked: the thread ends with this goroutine, so that no other inherits its scheduling
	runtime.LockOSThread()
	p.review = p.SetupThread()
}

// listen signals the loop when ctx ends or ended is closed, until stop is called.
func (p *Pipeline) listen(ctx context.Context, ended <-chan struct{}) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-ended:
			p.Wakeup.Signal()
		case <-over:
		}
	}()
	stopWatching := context.AfterFunc(ctx, p.Wakeup.Signal)
	return func() {
		stopWatching()
		close(over)
	}
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

// gather fills the flight with the newest frames that are wanted, in the order of the schedule.
func (p *Pipeline) gather(f *request) bool {
	f.frames, f.streams, f.images, f.corners = f.frames[:0], f.streams[:0], f.images[:0], f.corners[:0]
	slowdown := int(max(p.slowdown.Load(), 1))
	p.relieve()
	for _, camera := range p.schedule.order(*p.streams.Load()) {
		if len(f.frames) == cap(f.frames) || p.Quota.used() {
			break
		}
		if camera.suspect && len(f.frames) > 0 {
			continue // alone, when it is the first
		}
		frame, ok := camera.Source.Take()
		if !ok {
			p.departed(camera)
			continue
		}
		if judged := p.schedule.judge(camera, &frame, slowdown); judged != infer {
			camera.leaveOut(&frame, judged)
			continue
		}
		if !p.Quota.take() { // another loop took the last one
			camera.leaveOut(&frame, skip)
			break
		}
		p.schedule.chose(camera, frame.Captured)
		part := camera.Region.of(frame.Width, frame.Height)
		f.images = append(f.images, cut(frame.Image(), part, &f.copies[len(f.frames)]))
		f.corners = append(f.corners, part.Min)
		f.frames = append(f.frames, frame)
		f.streams = append(f.streams, camera)
		if camera.suspect {
			break
		}
	}
	return len(f.frames) > 0
}

// leaveOut releases a frame that is not inferred, and counts it.
func (l *stream) leaveOut(frame *capture.Frame, why verdict) {
	switch {
	case l.Tracker == nil:
	case why == gate:
		l.Tracker.hold(frame.Time)
	default:
		l.Tracker.skip(frame.Time)
	}
	frame.Release()
	l.meter.leaveOut(why)
}

// relieve looks after cameras with a deadline.
func (p *Pipeline) relieve() {
	r := &p.schedule.relief
	if !r.step(p.schedule.now()) {
		return
	}
	p.relief.Store(int32(r.factor()))
	p.Logger.Warn("rate changed for cameras with a deadline", "others_interval_factor", r.factor())
}

// submit starts a request. Its error is reported after the earlier requests are done.
func (p *Pipeline) submit(slot int) {
	f := &p.requests[slot]
	f.submitted = time.Now()
	f.err = p.Predictor.Submit(slot, f.images)
}

// finish waits for the slot and hands on what came out.
func (p *Pipeline) finish(slot int) {
	f := &p.requests[slot]
	var result *predict.BatchResult
	err := f.err
	if err == nil {
		result, err = p.Predictor.Wait(slot)
	}
	if p.busy == 1 && p.DeviceShare.wanted() {
		p.DeviceShare.end() // what follows is the host's
	}
	if err != nil {
		p.fail(slot, err)
		return
	}
	if slices.ContainsFunc(result.Results[:len(f.frames)], validOutput) {
		p.failures.clear()
	}
	for _, camera := range f.streams {
		camera.suspect = false
	}
	if result.Contradiction != nil {
		p.contradiction = result.Contradiction
		p.lose(f, result.Contradiction)
		return
	}
	took := int64(time.Since(f.submitted))
	if before := p.inference.Load(); before > 0 {
		took = (7*before + took) / 8
	}
	p.inference.Store(took)
	p.clock(f, result)
	for i := range f.frames {
		for j := range result.Results[i].Detections {
			result.Results[i].Detections[j].Translate(f.corners[i])
		}
		if m := result.Results[i].Map; m != nil {
			m.Translate(f.corners[i])
		}
		p.hand(f.streams[i], &f.frames[i], &result.Results[i], result.Timing)
		f.frames[i].Release()
	}
	f.frames = f.frames[:0]
}

// clock records how long the stages up to the detections took.
func (p *Pipeline) clock(f *request, result *predict.BatchResult) {
	t := &result.Timing
	if p.Stages == nil || t.Done == 0 {
		return // no image of the request could be read
	}
	for i := range f.frames {
		ready := f.frames[i].Captured
		if f.frames[i].Ready > ready {
			p.Stages.Record(stage.Capture, time.Duration(f.frames[i].Ready-ready))
			ready = f.frames[i].Ready
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

// hand passes the result of one image to the sinks. Positions in images of another size are meaningless here, so the objects are ended
// first.
func (p *Pipeline) hand(camera *stream, frame *capture.Frame, seen *predict.Result, timing engine.Timing) {
	p.returned(camera, frame)
	if camera.Tracker != nil && camera.Tracker.resized(frame.Width, frame.Height) {
		p.end(camera)
	}
	if seen.Err != nil {
		camera.meter.fail(seen.Err)
		p.failures.add(p.Logger, fmt.Errorf("camera %s: %w", camera.Name, seen.Err))
		return
	}
	in := &p.inferred
	detections := append(in.Detections[:0], seen.Detections...)
	in.Detections = detections
	in.Camera, in.Seq, in.Time, in.Captured = camera.Name, frame.Seq, frame.Time, frame.Captured
	in.Width, in.Height, in.Lossless, in.Tracker = frame.Width, frame.Height, camera.Lossless, camera.Tracker
	in.Timing = timing
	in.Tracks, in.IDs, in.Events, in.Attributes = nil, nil, nil, nil
	if in.Map, in.MapStats = nil, nil; seen.Map != nil && camera.MapStats != nil {
		in.Map, in.MapStats = seen.Map, camera.MapStats
		in.MapStats.Measure(in.Map, in.Width, in.Height)
	}
	settings := camera.settings.Load()
	if camera.Tracker == nil {
		in.Detections = slices.DeleteFunc(in.Detections, func(d postprocess.Detection) bool { return !settings.wants(&d) })
	} else {
		begun := capture.Monotonic()
		img := frame.Image()
		if err := camera.Tracker.track(in, &img, settings, p.secondary); err != nil {
			p.failures.add(p.Logger, err)
		}
		if p.secondary != nil {
			p.secondary.collect(in, &p.attributes)
		}
		p.Stages.Record(stage.Track, time.Duration(capture.Monotonic()-begun))
	}
	in.Latency = time.Duration(capture.Monotonic() - frame.Captured)
	in.Frame = frame
	for _, sink := range p.Sinks {
		sink.Frame(in)
	}
	if p.first.Load() == 0 {
		p.first.Store(int64(time.Since(p.started)))
	}
	took := time.Duration(capture.Monotonic() - frame.Captured)
	tooLate := camera.Deadline > 0 && took > camera.Deadline
	if camera.Deadline > 0 {
		p.schedule.relief.count(tooLate)
	}
	cut := seen.Stats.Cut > 0 && seen.Stats.Cut >= settings.Confidence
	if cut && !camera.warned {
		camera.warned = true
		p.Logger.Warn("more detections than the limit, the weakest are left out", "camera", camera.Name, "hint", "raise detect.max_detections")
	}
	camera.meter.frame(took, len(in.Detections), tooLate, cut)
	in.Detections = detections
}

// end makes the sinks end the objects of a camera whose images have stopped.
func (p *Pipeline) end(camera *stream) {
	if camera.Tracker == nil {
		return
	}
	in := Result{Camera: camera.Name, Labels: p.inferred.Labels, Tracker: camera.Tracker, Lossless: camera.Lossless}
	in.Seq, in.Time, in.Width, in.Height = camera.Tracker.seq, camera.Tracker.last, camera.Tracker.width, camera.Tracker.height
	in.Events = camera.Tracker.finish()
	if in.Events == nil {
		return
	}
	if p.secondary != nil {
		p.secondary.collect(&in, &p.attributes)
	}
	for _, sink := range p.Sinks {
		sink.Frame(&in)
	}
}

// fail finds out which images of a request the engine refused or lost: each one is tried alone, so that a bad one does not cost other
// cameras theirs. The slot has no work in flight.
func (p *Pipeline) fail(slot int, err error) {
	f := &p.requests[slot]
	if len(f.frames) == 1 {
		f.streams[0].suspect = true
		p.lose(f, err)
		p.failures.add(p.Logger, err)
		return
	}
	frames, streams, images, corners := slices.Clone(f.frames), slices.Clone(f.streams), slices.Clone(f.images), slices.Clone(f.corners)
	for i := range frames {
		p.heartbeat.Beat()
		f.frames, f.streams, f.images = append(f.frames[:0], frames[i]), append(f.streams[:0], streams[i]), append(f.images[:0], images[i])
		f.corners = append(f.corners[:0], corners[i])
		p.submit(slot)
		p.finish(slot)
	}
}

// lose releases the frames of a failed request.
func (p *Pipeline) lose(f *request, err error) {
	for i := range f.frames {
		f.streams[i].meter.fail(err)
		f.frames[i].Release()
	}
	f.frames = f.frames[:0]
}

// SetSlowdown multiplies the time between two frames of every camera by factor, 1 for full speed.
func (p *Pipeline) SetSlowdown(factor int) { p.slowdown.Store(int32(factor)) }

// Stats returns the counters of each camera, with rates since the previous call.
func (p *Pipeline) Stats() []CameraStats {
	now := time.Now()
	streams := *p.streams.Load()
	stats := make([]CameraStats, len(streams))
	for i, camera := range streams {
		stats[i] = camera.meter.snapshot(camera.Name, now)
		stats[i].Slowdown = p.slowed(camera)
	}
	return stats
}

// Totals returns the counters of each camera since it was added.
func (p *Pipeline) Totals() []CameraStats {
	streams := *p.streams.Load()
	stats := make([]CameraStats, len(streams))
	for i, camera := range streams {
		stats[i] = camera.meter.total(camera.Name)
		stats[i].Slowdown = p.slowed(camera)
	}
	return stats
}

// LastError returns why a camera's newest frame gave no result; empty after one that did and for an unknown camera.
func (p *Pipeline) LastError(camera string) string {
	if found := p.stream(camera); found != nil {
		return found.meter.lastError()
	}
	return ""
}

// Slowdown returns the factor applied to the time between two frames of a camera now; 1 for an unknown camera.
func (p *Pipeline) Slowdown(camera string) int {
	if found := p.stream(camera); found != nil {
		return p.slowed(found)
	}
	return 1
}

// slowed returns the factor applied to the time between two frames of a camera, because of heat or of cameras with a deadline.
func (p *Pipeline) slowed(l *stream) int {
	factor := int(max(p.slowdown.Load(), 1))
	if l.Deadline == 0 {
		factor *= int(max(p.relief.Load(), 1))
	}
	return factor
}

// Model returns the current model. It may be called after Open.
func (p *Pipeline) Model() engine.Model { return *p.model.Load() }

// InferenceTime is how long a request takes from Submit to the end of Wait, smoothed.
func (p *Pipeline) InferenceTime() time.Duration { return time.Duration(p.inference.Load()) }

// Stalled is how long the loop has not come round although it has something to do.
func (p *Pipeline) Stuck() time.Duration { return p.heartbeat.Stalled() }

// FirstFrame is the time from Open to the first inferred frame, 0 before it.
func (p *Pipeline) FirstFrame() time.Duration { return time.Duration(p.first.Load()) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
