// Package track follows objects from frame to frame: detections of the same object get the same ID.
package track

import (
	"fmt"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/internal/assignment"
)

// Defaults of Tracker's fields.
const (
	DefaultHighThreshold = 0.25
	DefaultLowThreshold  = 0.1
	DefaultTrackBuffer   = time.Second
)

// Tracker associates detections with tracks in two stages, as ByteTrack does (Zhang et al., 2022): detections with a high score are matched
// first, with the predicted boxes of all tracks; those with a low score may then continue the remaining tracks, which carries objects
// through occlusion. Overlaps are weighted with the boxes' common height, as in Hybrid-SORT (Yang et al., 2024). What remains is matched
// with enlarged boxes, as in C-BIoU (Yang et al., 2023): at a few frames per second an object leaves its box between two frames.
//
// Boxes are predicted by a Kalman filter with constant velocity over centre, width and height, as in BoT-SORT (Aharon et al., 2022). It
// works in seconds, not frames, so that dropped frames and changing rates do not matter, and trusts a detection less the lower its score.
// CompensateMotion reports the camera's own motion; without it, a displacement or zoom common to the matched tracks also moves the
// unmatched ones.
//
// The detections must include scores down to LowThreshold; a decoder with a higher threshold disables the second stage.
//
// Set the fields, call Open, then Update or Predict for each frame in order of time, from one goroutine. It allocates nothing once it has
// seen the largest number of objects.
type Tracker struct {
	// HighThreshold is the minimum score in the first stage, LowThreshold in the second. NewTrackThreshold is the minimum score of a new
	// track, HighThreshold + 0.1 when 0.
	HighThreshold, LowThreshold, NewTrackThreshold float32
	// TrackBuffer is how long a track may be lost before it ends, a second when 0 (ByteTrack's track_buffer).
	TrackBuffer time.Duration
	// Width and Height are the image size in pixels: a lost track ends when its predicted centre leaves the image. 0 means unknown. They
	// may change between two frames.
	Width, Height int
	// MaxLostAge is how long a lost object can be re-identified by its appearance, DefaultMaxLostAge when 0. AppearanceThreshold is the
	// minimum cosine similarity of two embeddings of one object, DefaultAppearanceThreshold when 0. Both apply if UpdateEmbedding is
	// called.
	MaxLostAge          time.Duration
	AppearanceThreshold float32

	// Set by Open, then used by the goroutine that calls Update.
	next          uint64
	started       bool
	at            time.Time
	objects       []object
	tracks        []postprocess.Track
	motionKnown   bool // CompensateMotion was called since the last Update
	ended         []endedTrack
	embeddingSize int         // 0 while there are no embeddings
	freeMeans     [][]float32 // unused memory of embeddings

	// Scratch memory of Update.
	high, low, unmatched  []int // numbers of detections
	candidates, remaining []int // indices of objects
	matched               []bool
	weights               []float64
	solver                assignment.Solver
	displacements         []displacement
}

// newTrackMargin is how much higher the score of a new track's first detection is than HighThreshold.
const newTrackMargin = 0.1

// maxVotes bounds the classes counted per object; more than three are noise.
const maxVotes = 4

type classVote struct {
	class  int
	weight float32
}

// object is a track with the tracker's private state.
type object struct {
	postprocess.Track
	motion       kalmanBox
	unoccluded   shapeMemory
	occluded     kalmanBox // of a lost object, assuming it is occluded: size and speed before the occlusion
	predicted    postprocess.Box
	votes        [maxVotes]classVote
	confirmed    bool
	appearance   appearance
	mismatch     appearance // embeddings since the last one that matched appearance
	undecided    bool       // reported as Tentative until re-identification is decided
	reidentified bool       // it continues an earlier track
}

// Open validates the configuration and removes all tracks; IDs restart at 1.
func (t *Tracker) Open() error {
	if t.HighThreshold == 0 {
		t.HighThreshold = DefaultHighThreshold
	}
	if t.LowThreshold == 0 {
		t.LowThreshold = min(DefaultLowThreshold, t.HighThreshold)
	}
	if t.NewTrackThreshold == 0 {
		t.NewTrackThreshold = min(t.HighThreshold+newTrackMargin, 1)
	}
	if t.TrackBuffer == 0 {
		t.TrackBuffer = DefaultTrackBuffer
	}
	if t.MaxLostAge == 0 {
		t.MaxLostAge = DefaultMaxLostAge
	}
	if t.AppearanceThreshold == 0 {
		t.AppearanceThreshold = DefaultAppearanceThreshold
	}
	if !(t.LowThreshold > 0 && t.LowThreshold <= t.HighThreshold && t.HighThreshold <= t.NewTrackThreshold && t.NewTrackThreshold <= 1) {
		return fmt.Errorf(
			"open tracker: scores must rise from low to high to new, within 0 and 1; they are %v, %v, %v",
			t.LowThreshold,
			t.HighThreshold,
			t.NewTrackThreshold,
		)
	}
	if t.Width < 0 || t.Height < 0 {
		return fmt.Errorf("open tracker: image of %dx%d", t.Width, t.Height)
	}
	if t.TrackBuffer < 0 {
		return fmt.Errorf("open tracker: track buffer %v is negative", t.TrackBuffer)
	}
	if t.MaxLostAge < 0 || !(t.AppearanceThreshold > -1 && t.AppearanceThreshold < 1) {
		return fmt.Errorf("open tracker: max lost age %v must not be negative, and appearance threshold %v must be between -1 and 1",
			t.MaxLostAge, t.AppearanceThreshold)
	}
	t.next = 0
	t.started = false
	t.motionKnown = false
	t.at = time.Time{}
	t.objects, t.tracks = t.objects[:0], t.tracks[:0]
	t.resetAppearance()
	return nil
}

// SetThresholds changes HighThreshold and LowThreshold from the next Update on; NewTrackThreshold becomes high + 0.1. Tracks are kept.
func (t *Tracker) SetThresholds(low, high float32) {
	t.LowThreshold, t.HighThreshold, t.NewTrackThreshold = low, high, min(high+newTrackMargin, 1)
}

// Update matches the detections of a frame captured at a time and returns the tracks, oldest first: active, tentative, lost and just ended
// ones. Tentative tracks that were not confirmed are dropped silently. The result is valid until the next call. A time that does not
// advance counts as the previous one.
func (t *Tracker) Update(at time.Time, detections []postprocess.Detection) []postprocess.Track {
	t.removeEnded()
	t.predictAll(at)
	t.splitByScore(detections)
	t.candidates = t.candidates[:0]
	for i := range t.objects {
		if state := t.objects[i].State; state == postprocess.Active || state == postprocess.Lost {
			t.candidates = append(t.candidates, i)
		}
	}
	t.associate(detections, t.candidates, t.high, firstOverlap, true)
	if !t.motionKnown {
		t.compensateCommonMotion()
	}
	t.motionKnown = false

	t.remaining = t.remaining[:0]
	for _, i := range t.candidates {
		if t.objects[i].Index < 0 {
			t.remaining = append(t.remaining, i)
		}
	}
	t.associate(detections, t.remaining, t.low, secondOverlap, false)

	t.remaining = t.remaining[:0]
	for i := range t.objects {
		if t.objects[i].State == postprocess.Tentative {
			t.remaining = append(t.remaining, i)
		}
	}
	t.associate(detections, t.remaining, t.unmatchedOf(t.high), tentativeOverlap, true)
	t.matchNearby(detections)
	t.resolveUnmatched()
	t.matchOccluded(detections)
	for _, i := range t.unmatchedOf(t.high) {
		if detections[i].Score >= t.NewTrackThreshold {
			t.start(&detections[i], i)
		}
	}
	t.started = true
	if t.embeddingSize > 0 {
		t.reidentify()
	}
	return t.report()
}

// Predict advances the tracks to a frame without detections and returns them like Update, with predicted boxes. States do not change: a
// frame that was not processed makes no track lost.
func (t *Tracker) Predict(at time.Time) []postprocess.Track {
	t.removeEnded()
	t.predictAll(at)
	return t.report()
}

// Reset removes all tracks, after the images have stopped; IDs continue.
func (t *Tracker) Reset() {
	t.objects, t.tracks, t.started = t.objects[:0], t.tracks[:0], false
	t.resetAppearance()
}

// removeEnded removes the tracks reported as ended but keeps their appearance.
func (t *Tracker) removeEnded() {
	for i := range t.objects {
		o := &t.objects[i]
		if o.State != postprocess.Ended {
			continue
		}
		if o.appearance.valid() && o.confirmed && !o.undecided {
			t.addEnded(&o.Track, &o.appearance)
		}
		t.releaseAppearance(&o.appearance)
		t.releaseAppearance(&o.mismatch)
	}
	t.objects = slices.DeleteFunc(t.objects, func(o object) bool { return o.State == postprocess.Ended })
}

// predictAll predicts every object at a time.
func (t *Tracker) predictAll(at time.Time) {
	steps := float32(0)
	if t.started && at.After(t.at) {
		steps = float32(at.Sub(t.at).Seconds() / step)
	}
	if !t.started || at.After(t.at) {
		t.at = at
	}
	for i := range t.objects {
		o := &t.objects[i]
		o.Index, o.Detail = -1, nil
		o.motion.predict(steps)
		if o.State == postprocess.Lost {
			o.occluded.predict(steps)
		}
		o.predicted = o.motion.box()
		o.Box = o.predicted
		if t.at.Sub(o.Last) > t.TrackBuffer || (o.State == postprocess.Lost && t.outsideImage(&o.motion)) {
			o.State = postprocess.Ended
		}
	}
}

// outsideImage reports whether a predicted centre is outside the image.
func (t *Tracker) outsideImage(m *kalmanBox) bool {
	if t.Width == 0 || t.Height == 0 {
		return false
	}
	return m.x.position < 0 || m.y.position < 0 || m.x.position > float32(t.Width) || m.y.position > float32(t.Height)
}

// A new track is active from its second detection, or from its third if the scores of the first two sum to less than confirmingScore:
// false alarms of low scores seldom last.
const (
	confirmingScore = 1.3
	confirmingHits  = 3
)

// match updates the object with a detection.
//
// A detection of the second stage, which is not reported, keeps and moves the object and does not vote for its class.
func (o *object) match(d *postprocess.Detection, index int, at time.Time, reported bool) {
	o.motion.update(d.Box, d.Score)
	o.unoccluded.update(d.Box, &o.motion, float32(at.Sub(o.Last).Seconds()/step))
	o.Box = d.Box
	o.Detail = d.Detail
	o.Index = index
	o.Last = at
	o.Hits++
	if o.State != postprocess.Tentative || o.Hits >= confirmingHits || o.Score+d.Score >= confirmingScore {
		o.State, o.confirmed = postprocess.Active, true
	}
	o.Score = d.Score
	if reported {
		o.vote(d.Class, d.Score)
	}
}

// vote adds a score to the votes of a class. A new class replaces the one with the fewest votes.
func (o *object) vote(class int, score float32) {
	weakest := 0
	for i := range o.votes {
		if o.votes[i].weight > 0 && o.votes[i].class == class {
			weakest = i
			break
		}
		if o.votes[i].weight < o.votes[weakest].weight {
			weakest = i
		}
	}
	b := &o.votes[weakest]
	if b.class != class {
		*b = classVote{class: class}
	}
	b.weight += score
	best := b
	for i := range o.votes {
		if o.votes[i].class == o.Class && o.votes[i].weight >= best.weight {
			best = &o.votes[i]
		}
	}
	o.Class = best.class
}

// resolveUnmatched updates the state of objects without a detection.
func (t *Tracker) resolveUnmatched() {
	for i := range t.objects {
		o := &t.objects[i]
		switch {
		case o.Index >= 0:
		case o.State == postprocess.Tentative:
			o.State = postprocess.Ended
		case o.State == postprocess.Active:
			o.State, o.undecided = postprocess.Lost, false
			o.occluded = o.motion
			o.unoccluded.restore(&o.occluded)
		}
	}
}

func (t *Tracker) start(d *postprocess.Detection, index int) {
	t.next++
	state := postprocess.Tentative
	if !t.started {
		// Objects in the first frame need no confirmation.
		state = postprocess.Active
	}
	t.objects = append(t.objects, object{
		Track:     postprocess.Track{ID: t.next, Detection: *d, State: state, Index: index, Hits: 1, First: t.at, Last: t.at},
		confirmed: !t.started,
		undecided: t.embeddingSize > 0 && t.canReidentify(),
	})
	o := &t.objects[len(t.objects)-1]
	o.motion.start(d.Box)
	o.unoccluded.start(d.Box)
	o.votes[0] = classVote{d.Class, d.Score}
}

func (t *Tracker) report() []postprocess.Track {
	t.tracks = t.tracks[:0]
	for i := range t.objects {
		o := &t.objects[i]
		if o.State == postprocess.Ended && !o.confirmed {
			continue
		}
		o.VX, o.VY = o.motion.x.velocity/step, o.motion.y.velocity/step
		t.tracks = append(t.tracks, o.Track)
		if o.undecided && o.State == postprocess.Active {
			t.tracks[len(t.tracks)-1].State = postprocess.Tentative
		}
	}
	return t.tracks
}
