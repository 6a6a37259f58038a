// Package pipeline is the frame loop: it takes the newest frame of every camera, keeps the predictor's slots busy, tracks the detections
// and passes the results to sinks. A single goroutine does all of it (loop in pipeline.go); nothing but the predictor allocates or blocks.
// A predictor that does not return is abandoned with the goroutine that waits for it, and another goroutine goes on (hang.go).
// A frame goes through schedule.go (is it inferred?), request.go (the predictor) and output.go (tracker and sinks).
package pipeline

import (
	"context"
	"errors"
	"image"
	"log/slog"
	"runtime"
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
	Wait() // until Signal has been called since the last Wait
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
	// Privacy is what is hidden in its images; nil for nothing.
	Privacy *Privacy
	// Lossless makes the camera wait until its frames are taken.
	Lossless bool
	// Tracker tracks the camera's objects; nil for detections only.
	Tracker *Tracker
	// MapStats summarizes the dense maps of segmentation and depth networks; nil for other networks.
	MapStats *zone.MapStats
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
	// SetupThread is called in the thread that from then on carries out Run alone, once a predictor waits for a device in the caller's
	// thread, so that the thread can have a scheduling of its own; what it returns is called in every iteration. Nil for none.
	SetupThread func() (review func())
	// DeviceShare is the loop's place among those that share its device; nil where it has one alone.
	DeviceShare *DeviceShare
	// Quota ends the loop after a number of frames; nil for no limit.
	Quota *Quota
	// Stages take the time of each stage; nil for none. Several loops may have the same.
	Stages *stage.Times
	// Secondary are networks that classify tracked objects; nil for none.
	Secondary *SecondaryStage
	// OnFault is called by the frame goroutine when the predictor is at fault: for ten seconds it has failed or its output was invalid,
	// without a right one in between; or its output contradicts the recognised layout from the start, in which case the error is a
	// *predict.Contradiction; or it did not return from a request, and the error is a *Hung. Frames are then dropped until Replace. With
	// nil, Run returns the error.
	OnFault func(error)
	// Hold keeps a predictor open whose call was abandoned, until returned is called, after the call has returned. Nil for nothing to do.
	Hold func() (returned func())
	// Fault is why the predictor cannot be used from the start: frames are dropped until Start. Nil for none.
	Fault  error
	Logger *slog.Logger

	cameraSet
	arrangement atomic.Pointer[arrangement]
	replacement atomic.Pointer[replacement]
	inference   atomic.Int64 // smoothed nanoseconds from Submit to Wait
	heartbeat   Heartbeat
	guard       atomic.Pointer[guard] // of the loop's current goroutine
	overdue     atomic.Int64          // nanoseconds, see Overdue

	// Frame goroutine only.
	requests []request
	oldest   int // slot of the oldest request in flight
	busy     int // requests in flight
	schedule schedule
	output
	review func() // of the loop's thread; nil while it has none of its own
	// contradiction is set when the predictor's output means nothing; fault when the predictor is no longer used.
	contradiction *predict.Contradiction
	fault         error
}

// prepare allocates everything the frame loop needs.
func (p *Pipeline) prepare() {
	model := p.Predictor.Model()
	p.model.Store(&model.Model)
	p.setLabels(model.Metadata.Labels, p.Secondary)
	p.makeRequests()
	p.guard.CompareAndSwap(nil, new(guard)) // for those that drive the loop themselves
}

// makeRequests makes a request for every slot of the predictor.
func (p *Pipeline) makeRequests() {
	batch := p.Predictor.Model().MaxBatch
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
	if p.Wakeup == nil {
		p.Wakeup = new(capture.Wakeup)
	}
	p.DeviceShare.notify(p.Wakeup)
	p.fault = p.Fault
	p.schedule = schedule{now: capture.Monotonic}
	p.confidence, p.minScore = p.Confidence, p.MinScore
	p.output = output{sinks: p.Sinks, stages: p.Stages, logger: p.Logger, relief: &p.schedule.relief, started: time.Now()}
	p.inferred.Detections = make([]postprocess.Detection, 0, 512)
	p.prepare()
	streams, err := p.newStreams(nil, p.Cameras, p.Model().Metadata.Labels)
	if err != nil {
		return err
	}
	p.streams.Store(&streams)
	p.DeviceShare.weigh(streams)
	return nil
}

// Run processes frames until ctx ends, or until ended is closed and every frame captured before is done. The error is that of a predictor
// at fault, see OnFault. It finishes the requests in flight before it returns, but does not wait long for them when ctx has ended.
func (p *Pipeline) Run(ctx context.Context, ended <-chan struct{}) error {
	defer p.signalAtEnd(ctx, ended)()
	return p.watch(ctx, ended)
}

// loop is Run in the loop's goroutine, which ends within it if Run has abandoned it.
func (p *Pipeline) loop(ctx context.Context, ended <-chan struct{}) error {
	p.lockThread()
	err := p.work(ctx, ended)
	p.finishAll()
	p.DeviceShare.release()
	for _, camera := range *p.streams.Load() {
		p.finishObjects(camera)
	}
	p.heartbeat.Rest()
	return err
}

// work is the loop proper.
func (p *Pipeline) work(ctx context.Context, ended <-chan struct{}) error {
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
			p.dropWaiting()
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
		if !p.DeviceShare.acquire() { // nothing is in flight
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
			p.DeviceShare.release()
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

// lockThread locks the loop to its thread if that helps. Backends that compute in goroutines of their own share a thread with an ordinary
// loop: a locked loop would pass every frame to another thread and wait twice for a busy CPU.
func (p *Pipeline) lockThread() {
	if p.SetupThread == nil || p.review != nil || !p.Model().BlocksThread {
		return
	}
	// never unlocked: the thread ends with this goroutine, so that no other inherits its scheduling
	runtime.LockOSThread()
	p.review = p.SetupThread()
}

// signalAtEnd signals the loop when ctx ends or ended is closed, until stop is called.
func (p *Pipeline) signalAtEnd(ctx context.Context, ended <-chan struct{}) (stop func()) {
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

// InferenceTime is how long a request takes from Submit to the end of Wait, smoothed.
func (p *Pipeline) InferenceTime() time.Duration { return time.Duration(p.inference.Load()) }

// Stuck is for how long the loop has been in one iteration although it has something to do. Calls into the predictor do not count: Run
// watches them.
func (p *Pipeline) Stuck() time.Duration {
	if g := p.guard.Load(); g != nil && g.inCall() {
		return 0
	}
	return p.heartbeat.Stalled()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
