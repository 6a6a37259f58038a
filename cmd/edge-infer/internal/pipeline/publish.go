package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// publish passes the result of one image to the sinks. Positions in images of another size mean nothing: objects end when the size changes.
func (p *Pipeline) publish(camera *stream, frame *capture.Frame, seen *predict.Result, timing engine.Timing) {
	p.finishEarlier(camera, frame)
	if camera.Tracker != nil && camera.Tracker.resized(frame.Width, frame.Height) {
		p.finishObjects(camera)
	}
	if seen.Err != nil {
		camera.meter.fail(seen.Err)
		p.failures.add(p.Logger, fmt.Errorf("camera %s: %w", camera.Name, seen.Err))
		return
	}
	settings := camera.settings.Load()
	result := p.fill(camera, frame, seen, timing)
	memory := result.Detections // what follows may shorten the slice
	if camera.Tracker == nil {
		result.Detections = slices.DeleteFunc(result.Detections, func(d postprocess.Detection) bool { return !settings.wants(&d) })
	} else {
		p.track(result, camera.Tracker, settings)
	}
	result.Latency = time.Duration(capture.Monotonic() - frame.Captured)
	result.Hidden = camera.concealer.conceal(frame, seen.Detections, result.Tracks)
	for _, sink := range p.Sinks {
		sink.Frame(result)
	}
	p.count(camera, result, settings.Confidence <= seen.Stats.Cut && seen.Stats.Cut > 0)
	result.Detections = memory
}

// fill returns the result of an image before tracking, in memory that the next image uses again.
func (p *Pipeline) fill(camera *stream, frame *capture.Frame, seen *predict.Result, timing engine.Timing) *Result {
	result := &p.inferred
	result.Camera, result.Seq, result.Time, result.Captured = camera.Name, frame.Seq, frame.Time, frame.Captured
	result.Width, result.Height, result.Frame = frame.Width, frame.Height, frame
	result.Lossless, result.Tracker, result.Timing = camera.Lossless, camera.Tracker, timing
	result.Detections = append(result.Detections[:0], seen.Detections...)
	result.Tracks, result.IDs, result.Events, result.Attributes = nil, nil, nil, nil
	result.Map, result.MapStats = nil, nil
	if seen.Map != nil && camera.MapStats != nil {
		result.Map, result.MapStats = seen.Map, camera.MapStats
		result.MapStats.Measure(result.Map, result.Width, result.Height)
	}
	return result
}

// track completes a result with tracks, events and attributes. An error costs the tracks of this image.
func (p *Pipeline) track(result *Result, tracker *Tracker, settings *Settings) {
	begun := capture.Monotonic()
	img := result.Frame.Image()
	if err := tracker.track(result, &img, settings, p.secondary); err != nil {
		p.failures.add(p.Logger, err)
	}
	if p.secondary != nil {
		p.secondary.collect(result, &p.attributes)
	}
	p.Stages.Record(stage.Track, time.Duration(capture.Monotonic()-begun))
}

// count counts a published result. cut is set if the image had more reported detections than the limit.
func (p *Pipeline) count(camera *stream, result *Result, cut bool) {
	if p.first.Load() == 0 {
		p.first.Store(int64(time.Since(p.started)))
	}
	took := time.Duration(capture.Monotonic() - result.Captured)
	tooLate := camera.Deadline > 0 && took > camera.Deadline
	if camera.Deadline > 0 {
		p.schedule.relief.count(tooLate)
	}
	if cut && !camera.warned {
		camera.warned = true
		p.Logger.Warn("more detections than the limit, the weakest are left out", "camera", camera.Name, "hint", "raise detect.max_detections")
	}
	camera.meter.frame(took, len(result.Detections), tooLate, cut)
}
