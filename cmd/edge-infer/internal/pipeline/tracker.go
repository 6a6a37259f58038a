package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Tracker turns a camera's detections into tracks, and tracks into events and counts. Frame goroutine only after Open.
type Tracker struct {
	// Config holds zones, lines and filters; coordinates are scaled to the image.
	Config    zone.Config
	Labels    []string
	Keypoints []string // names of the network's keypoints
	// Confidence is the reported threshold at first. The tracker is given weaker detections too, which carry objects through occlusion and
	// are not counted.
	Confidence float32
	// Profile is the kind of camera; empty is track.Static.
	Profile track.Profile
	// MaxLostAge and AppearanceThreshold configure re-identification; see track.Tracker.
	MaxLostAge          time.Duration
	AppearanceThreshold float32

	tracker       track.Tracker
	camera        motion.Estimator
	moving        []motion.Box // of objects, which may move by themselves; kept for the next frame
	analytics     zone.Analytics
	width, height int // the image that analytics is open for
	ids           []uint64
	confidence    float32 // of the latest frame
	seq           uint64
	last          time.Time
}

// Open checks the configuration. The images' size is taken from the first frame.
func (t *Tracker) Open() error {
	if err := t.Config.Validate(zone.Names{Labels: t.Labels, Keypoints: t.Keypoints}); err != nil {
		return err
	}
	t.tracker = track.Tracker{
		HighThreshold: t.Confidence, LowThreshold: float32(MinScore(float64(t.Confidence))),
		MaxLostAge: t.MaxLostAge, AppearanceThreshold: t.AppearanceThreshold,
	}
	t.confidence = t.Confidence
	t.camera.Reset()
	return t.tracker.Open()
}

// MinScore is the decoded threshold that tracking needs for a reported one.
func MinScore(reported float64) float64 { return min(reported/2, track.DefaultLowThreshold) }

// compensate passes the camera's motion since the last processed image to the tracker.
func (t *Tracker) compensate(img *engine.Image) {
	if t.Profile != track.PTZ {
		return
	}
	if m, ok := t.camera.Estimate(img, t.moving); ok {
		t.tracker.CompensateMotion(track.Affine(m))
	}
}

// track tracks the detections of this frame and completes them. in.Detections shrinks to those that are reported.
func (t *Tracker) track(in *Result, img *engine.Image, settings *Settings, secondary *SecondaryStage) error {
	if err := t.fit(in.Width, in.Height); err != nil {
		return fmt.Errorf("camera %s: %w", in.Camera, err)
	}
	t.seq, t.last = in.Seq, in.Time
	in.Detections = slices.DeleteFunc(in.Detections, func(d postprocess.Detection) bool { return !settings.wantsClass(d.Class) })
	detections := t.analytics.Filter(in.Detections)
	t.compensate(img)
	t.follow(settings.Confidence)
	in.Tracks = t.tracker.Update(in.Time, detections)
	t.moving = t.moving[:0]
	for i := range in.Tracks {
		t.moving = append(t.moving, motion.Box(in.Tracks[i].Box))
	}
	t.ids = append(t.ids[:0], make([]uint64, len(detections))...)
	for i := range in.Tracks {
		if index := in.Tracks[i].Index; index >= 0 {
			t.ids[index] = in.Tracks[i].ID
		}
	}
	if secondary != nil {
		secondary.process(in, t, img)
	}
	in.Events = t.analytics.Update(in.Seq, in.Time, in.Tracks)
	in.Detections, in.IDs = report(detections, t.ids, settings)
	return nil
}

// follow applies the confidence of a frame, which may have changed, to tracks, zones and lines.
func (t *Tracker) follow(confidence float32) {
	t.analytics.Confidence = confidence
	if confidence != t.confidence {
		t.confidence = confidence
		t.tracker.SetThresholds(float32(MinScore(float64(confidence))), confidence)
	}
}

// Track is for callers without a Pipeline: it tracks the detections of a frame. The caller sets Camera, Seq, Time, Width, Height and
// Detections, which may be as weak as MinScore; Track leaves those of Confidence and more, and sets Tracks, IDs and Events.
func (t *Tracker) Track(in *Result, img *engine.Image) error {
	return t.track(in, img, &Settings{Confidence: t.Confidence}, nil)
}

// resized reports whether there were images before, of another size.
func (t *Tracker) resized(width, height int) bool {
	return t.width != 0 && (width != t.width || height != t.height)
}

// fit makes tracker and analytics ready for images of that size. Counts live on when the size changes.
func (t *Tracker) fit(width, height int) error {
	if width == t.width && height == t.height {
		return nil
	}
	t.tracker.Width, t.tracker.Height = width, height
	var err error
	if t.width == 0 {
		t.analytics = zone.Analytics{Config: t.Config, Labels: t.Labels, Keypoints: t.Keypoints, Width: width, Height: height}
		err = t.analytics.Open()
	} else {
		err = t.analytics.Resize(width, height)
	}
	if err == nil {
		t.width, t.height = width, height
	}
	return err
}

// report keeps the detections that are wanted, and their track numbers.
func report(detections []postprocess.Detection, ids []uint64, settings *Settings) ([]postprocess.Detection, []uint64) {
	kept := 0
	for i := range detections {
		if settings.wants(&detections[i]) {
			detections[kept], ids[kept] = detections[i], ids[i]
			kept++
		}
	}
	return detections[:kept], ids[:kept]
}

// skip advances the tracks over a frame that is not inferred.
func (t *Tracker) skip(at time.Time) {
	if t.width > 0 {
		t.tracker.Predict(at)
	}
}

// hold advances time while nothing moves: the objects stay where they are.
func (t *Tracker) hold(at time.Time) {
	if t.width > 0 {
		t.tracker.Hold(at)
	}
}

// finish ends every object; nil when there was no frame. Frames may follow: their objects are new ones.
func (t *Tracker) finish() *zone.Result {
	if t.width == 0 {
		return nil
	}
	t.tracker.Reset()
	t.camera.Reset()
	return t.analytics.Finish(t.seq, t.last)
}

// Object returns what is reported of a track, or nil. It is valid until the next frame.
func (t *Tracker) Object(track uint64) *zone.Object {
	if t.width == 0 {
		return nil
	}
	return t.analytics.Object(track)
}

// Counts is how many objects the image shows, by class.
func (t *Tracker) Counts() []int {
	if t.width == 0 {
		return nil
	}
	return t.analytics.Present()
}

// ZoneCount is the count of a zone of the configuration by class; zero before the first frame.
func (t *Tracker) ZoneCount(number int) zone.ZoneCount {
	if t.width == 0 {
		return zone.ZoneCount{}
	}
	return t.analytics.Zone(number)
}

// LineCount is the count of a line of the configuration by class; zero before the first frame.
func (t *Tracker) LineCount(line int) zone.LineCount {
	if t.width == 0 {
		return zone.LineCount{}
	}
	return t.analytics.Line(line)
}
