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
	// Confidence is the reported threshold. The tracker is given weaker detections too, which carry objects through occlusion.
	Confidence float32
	// Profile is the kind of camera; empty is track.Static.
	Profile track.Profile
	// MaxLostAge and Alike are the fields of the same names of track.Tracker.
	MaxLostAge          time.Duration
	AppearanceThreshold float32

	tracker       track.Tracker
	camera        motion.Estimator
	moving        []motion.Box // where something may move by itself, memory of look
	analytics     zone.Analytics
	width, height int // the image that analytics is open for
	ids           []uint64
	seq           uint64
	last          time.Time
}

// Open checks the configuration. The images' size is taken from the first frame.
func (f *Tracker) Open() error {
	if err := f.Config.Validate(zone.Names{Labels: f.Labels, Keypoints: f.Keypoints}); err != nil {
		return err
	}
	f.tracker = track.Tracker{
		HighThreshold: f.Confidence, LowThreshold: float32(MinScore(float64(f.Confidence))), BufferScale: f.Profile.BufferScale(),
		MaxLostAge: f.MaxLostAge, AppearanceThreshold: f.AppearanceThreshold,
	}
	f.camera.Reset()
	return f.tracker.Open()
}

// MinScore is the decoded threshold that tracking needs for a reported one.
func MinScore(reported float64) float64 { return min(reported/2, track.DefaultLowThreshold) }

// compensate passes the camera's motion since the last processed image to the tracker.
func (f *Tracker) compensate(img *engine.Image) {
	if f.Profile != track.PTZ {
		return
	}
	if m, ok := f.camera.Estimate(img, f.moving); ok {
		f.tracker.CompensateMotion(track.Affine(m))
	}
}

// track tracks the detections of this frame and completes them. in.Detections shrinks to those that are reported.
func (f *Tracker) track(in *Result, img *engine.Image, settings *Settings, secondary *SecondaryStage) error {
	if err := f.fit(in.Width, in.Height); err != nil {
		return fmt.Errorf("camera %s: %w", in.Camera, err)
	}
	f.seq, f.last = in.Seq, in.Time
	in.Detections = slices.DeleteFunc(in.Detections, func(d postprocess.Detection) bool { return !settings.wantsClass(d.Class) })
	detections := f.analytics.Filter(in.Detections)
	f.compensate(img)
	in.Tracks = f.tracker.Update(in.Time, detections)
	f.moving = f.moving[:0]
	for i := range in.Tracks {
		f.moving = append(f.moving, motion.Box(in.Tracks[i].Box))
	}
	f.ids = append(f.ids[:0], make([]uint64, len(detections))...)
	for i := range in.Tracks {
		if index := in.Tracks[i].Index; index >= 0 {
			f.ids[index] = in.Tracks[i].ID
		}
	}
	if secondary != nil {
		secondary.process(in, f, img)
	}
	in.Events = f.analytics.Update(in.Seq, in.Time, in.Tracks)
	in.Detections, in.IDs = report(detections, f.ids, settings)
	return nil
}

// Track is for callers without a Pipeline: it tracks the detections of a frame. The caller sets Camera, Seq, Time, Width, Height and
// Detections, which may be as weak as MinScore; Track leaves those of Confidence and more, and sets Tracks, IDs and Events.
func (f *Tracker) Track(in *Result, img *engine.Image) error {
	return f.track(in, img, &Settings{Confidence: f.Confidence}, nil)
}

// resized reports whether there were images before, of another size.
func (f *Tracker) resized(width, height int) bool {
	return f.width != 0 && (width != f.width || height != f.height)
}

// fit makes tracker and analytics ready for images of that size. Counts live on when the size changes.
func (f *Tracker) fit(width, height int) error {
	if width == f.width && height == f.height {
		return nil
	}
	f.tracker.Width, f.tracker.Height = width, height
	var err error
	if f.width == 0 {
		f.analytics = zone.Analytics{Config: f.Config, Labels: f.Labels, Keypoints: f.Keypoints, Width: width, Height: height}
		err = f.analytics.Open()
	} else {
		err = f.analytics.Resize(width, height)
	}
	if err == nil {
		f.width, f.height = width, height
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
func (f *Tracker) skip(at time.Time) {
	if f.width > 0 {
		f.tracker.Predict(at)
	}
}

// hold advances time while nothing moves: the objects stay where they are.
func (f *Tracker) hold(at time.Time) {
	if f.width > 0 {
		f.tracker.Hold(at)
	}
}

// finish ends every object; nil when there was no frame. Frames may follow: their objects are new ones.
func (f *Tracker) finish() *zone.Result {
	if f.width == 0 {
		return nil
	}
	f.tracker.Reset()
	f.camera.Reset()
	return f.analytics.Finish(f.seq, f.last)
}

// Object returns what is reported of a track, or nil. It is valid until the next frame.
func (f *Tracker) Object(track uint64) *zone.Object {
	if f.width == 0 {
		return nil
	}
	return f.analytics.Object(track)
}

// Counts is how many objects the image shows, by class.
func (f *Tracker) Counts() []int {
	if f.width == 0 {
		return nil
	}
	return f.analytics.Present()
}

// ZoneCount is the count of a zone of the configuration by class; zero before the first frame.
func (f *Tracker) ZoneCount(number int) zone.ZoneCount {
	if f.width == 0 {
		return zone.ZoneCount{}
	}
	return f.analytics.Zone(number)
}

// LineCount is the count of a line of the configuration by class; zero before the first frame.
func (f *Tracker) LineCount(line int) zone.LineCount {
	if f.width == 0 {
		return zone.LineCount{}
	}
	return f.analytics.Line(line)
}
