package pipeline

import (
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// output completes results and passes them to the sinks. Its methods are called by the frame goroutine only, except FirstFrame.
type output struct {
	// Set by Open.
	sinks   []Sink
	stages  *stage.Times
	logger  *slog.Logger
	relief  *relief
	started time.Time

	first    atomic.Int64 // nanoseconds from Open to the first inferred frame
	inferred Result
	failures failures
	// secondary is nil if the secondary networks do not know the predictor's classes; attributes holds its results.
	secondary  *SecondaryStage
	attributes Attributes
}

// FirstFrame is the time from Open to the first inferred frame, 0 before it.
func (o *output) FirstFrame() time.Duration { return time.Duration(o.first.Load()) }

// setLabels takes over the class names of a predictor, and the secondary networks if they know those.
func (o *output) setLabels(labels []string, secondary *SecondaryStage) {
	o.inferred.Labels = labels
	o.secondary = nil
	if secondary != nil && slices.Equal(labels, secondary.Labels) {
		o.secondary = secondary
	}
}

// publish passes the result of one image to the sinks. Positions in images of another size mean nothing: objects end when the size changes.
func (o *output) publish(camera *stream, frame *capture.Frame, seen *predict.Result, timing engine.Timing) {
	o.finishEarlier(camera, frame)
	if camera.Tracker != nil && camera.Tracker.resized(frame.Width, frame.Height) {
		o.finishObjects(camera)
	}
	if seen.Err != nil {
		camera.meter.fail(seen.Err)
		o.failures.add(o.logger, fmt.Errorf("camera %s: %w", camera.Name, seen.Err))
		return
	}
	settings := camera.settings.Load()
	result := o.fill(camera, frame, seen, timing)
	memory := result.Detections // what follows may shorten the slice
	if camera.Tracker == nil {
		result.Detections = slices.DeleteFunc(result.Detections, func(d postprocess.Detection) bool { return !settings.wants(&d) })
	} else {
		o.track(result, camera.Tracker, settings)
	}
	result.Latency = time.Duration(capture.Monotonic() - frame.Captured)
	result.Hidden = camera.concealer.conceal(frame, seen.Detections, result.Tracks)
	for _, sink := range o.sinks {
		sink.Frame(result)
	}
	o.count(camera, result, settings.Confidence <= seen.Stats.Cut && seen.Stats.Cut > 0)
	result.Detections = memory
}

// fill returns the result of an image before tracking, in memory that the next image uses again.
func (o *output) fill(camera *stream, frame *capture.Frame, seen *predict.Result, timing engine.Timing) *Result {
	o.inferred = Result{
		Camera: camera.Name, Lossless: camera.Lossless, Tracker: camera.Tracker,
		Frame: frame, Seq: frame.Seq, Time: frame.Time, Captured: frame.Captured, Width: frame.Width, Height: frame.Height,
		Timing: timing, Labels: o.inferred.Labels, Stages: o.stages,
		Detections: append(o.inferred.Detections[:0], seen.Detections...),
	}
	result := &o.inferred
	if seen.Map != nil && camera.MapStats != nil {
		result.Map, result.MapStats = seen.Map, camera.MapStats
		result.MapStats.Measure(result.Map, result.Width, result.Height)
	}
	return result
}

// track completes a result with tracks, events and attributes. An error costs the tracks of this image.
func (o *output) track(result *Result, tracker *Tracker, settings *Settings) {
	begun := capture.Monotonic()
	img := result.Frame.Image()
	if err := tracker.track(result, &img, settings, o.secondary); err != nil {
		o.failures.add(o.logger, err)
	}
	if o.secondary != nil {
		o.secondary.collect(result, &o.attributes)
	}
	o.stages.Record(stage.Track, time.Duration(capture.Monotonic()-begun))
}

// count counts a published result. cut is set if the image had more reported detections than the limit.
func (o *output) count(camera *stream, result *Result, cut bool) {
	if o.first.Load() == 0 {
		o.first.Store(int64(time.Since(o.started)))
	}
	took := time.Duration(capture.Monotonic() - result.Captured)
	tooLate := camera.Deadline > 0 && took > camera.Deadline
	if camera.Deadline > 0 {
		o.relief.count(tooLate)
	}
	if cut && !camera.warned {
		camera.warned = true
		o.logger.Warn("more detections than the limit, the weakest are left out", "camera", camera.Name, "hint", "raise detect.max_detections")
	}
	camera.meter.frame(took, len(result.Detections), tooLate, cut)
}

// finishEarlier ends the objects that were seen before the images stopped, if this frame was captured afterwards.
func (o *output) finishEarlier(camera *stream, frame *capture.Frame) {
	if at := camera.stopped.Load(); at != 0 && frame.Captured > at {
		o.finishAt(camera, at)
	}
}

func (o *output) finishAt(camera *stream, at int64) {
	o.finishObjects(camera)
	camera.stopped.CompareAndSwap(at, 0) // it may have stopped again
}

// finishObjects makes the sinks end the objects of a camera whose images have stopped.
func (o *output) finishObjects(camera *stream) {
	if camera.Tracker == nil {
		return
	}
	t := camera.Tracker
	result := Result{
		Camera: camera.Name, Labels: o.inferred.Labels, Tracker: t, Lossless: camera.Lossless,
		Seq: t.seq, Time: t.last, Width: t.width, Height: t.height,
	}
	result.Events = t.finish()
	if result.Events == nil {
		return
	}
	if o.secondary != nil {
		o.secondary.collect(&result, &o.attributes)
	}
	for _, sink := range o.sinks {
		sink.Frame(&result)
	}
}
