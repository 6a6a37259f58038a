// Package track follows objects from frame to frame: it gives every detection of the same object the same number.
package track

import (
	"fmt"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/internal/assignment"
)

// ClassSettings is what one class needs to be tracked; zero fields take the tracker's.
type ClassSettings struct {
	// HighScore, NewScore and Keep are Tracker's, for this class.
	HighThreshold, NewTrackThreshold float32
	TrackBuffer                      time.Duration
	// MinWidth and MinHeight are the smallest box that is looked at, in pixels.
	MinWidth, MinHeight float32
}

// What Open puts where a Tracker's field is zero.
const (
	DefaultHighThreshold = 0.25
	DefaultLowThreshold  = 0.1
	DefaultTrackBuffer   = time.Second
	DefaultBufferScale   = 1.0
)

// Tracker matches in two stages, as ByteTrack does (Zhang et al., 2022): detections with a high score first, to the predicted boxes of all
// tracks; those with a low score may then go on with tracks that are still without one, which carries objects through occlusion. A Kalman
// filter with constant velocity over centre, width and height predicts, as in BoT-SORT (Aharon et al., 2022); it works in time, not in
// frames, so that dropped frames and changing rates do no harm, and it believes a detection less the lower its score. Boxes are compared
// after both were widened by as much as the prediction is unsure. Move tells of the camera's own motion; without it, when most objects jump
// the same way the camera moved, and tracks without a detection are moved along.
//
// Feed it everything down to LowScore: a decoder that cuts at a higher score takes away the second chance.
//
// Set the fields, call Open, then Update or Predict for each frame in order of time, from one goroutine. It allocates nothing once it has
// seen the largest number of objects.
type Tracker struct {
	// HighScore is the lowest score of the first matching, LowScore of the second; NewScore is what a detection needs to start a track,
	// 0 for a tenth more than HighScore.
	HighThreshold, LowThreshold, NewTrackThreshold float32
	// TrackBuffer is how long a track may be lost before it ends, 0 for a second.
	TrackBuffer time.Duration
	// Width and Height are the image's, in pixels: a lost track ends when its predicted centre leaves the image. 0 means unknown. They
	// may be set between two frames.
	Width, Height int
	// Reach is by how many standard deviations of a predicted place boxes are widened before they are compared (buffered IoU, Yang et al.,
	// 2023), 0 for DefaultBufferScale. Few images a second want more of it.
	BufferScale float32
	// StrictClasses never matches a detection to a track of another class. Without it another class only counts half, so that a
	// detector that wavers between two classes does not break the track.
	StrictClasses bool
	// Classes are exceptions by class.
	Classes map[int]ClassSettings
	// Recall is how long an object that was lost may be known again by how it appears, 0 for DefaultMaxLostAge; Alike the cosine of two vectors
	// from which they are of one object, 0 for DefaultAppearanceThreshold. Both matter where Appear is called.
	MaxLostAge          time.Duration
	AppearanceThreshold float32

	// Set by Open, then the goroutine that calls Update.
	next    uint64
	started   bool
	at      time.Time
	objects []object
	tracks  []postprocess.Track
	motionKnown    bool // how the camera moved since the last Update
	ended    []endedTrack
	embeddingSize int         // of a vector; 0 while nobody looks
	freeMeans   [][]float32 // memoryRate of looks that nobody needs

	// Scratch of one Update.
	high, low, unmatched []int // numbers of detections
	candidates, remaining      []int // numbers of objects
	matched           []bool
	weights         []float64
	solver          assignment.Solver
	shiftX, shiftY  []float32
}

// maxVotes is how many classes one object's maxVotes are counted for; more than three is noise.
const maxVotes = 4

type classVote struct {
	class  int
	weight float32
}

// object is a track with what the tracker alone needs.
type object struct {
	postprocess.Track
	motion    kalmanBox
	unoccluded     shapeMemory
	occluded    kalmanBox // of a lost object if it is behind something: with the size and speed of the whole
	predicted postprocess.Box
	votes   [maxVotes]classVote
	maxLost      time.Duration
	confirmed bool
	appearance     appearance
	mismatch    appearance // what it looked like since it last looked like itself
	undecided      bool  // told as Tentative until it is known who it is
	reidentified  bool  // it is one that was there before
}

// Open checks the configuration and forgets everything; ids start again.
func (t *Tracker) Open() error {
	if t.HighThreshold == 0 {
		t.HighThreshold = DefaultHighThreshold
	}
	if t.LowThreshold == 0 {
		t.LowThreshold = min(DefaultLowThreshold, t.HighThreshold)
	}
	if t.NewTrackThreshold == 0 {
		t.NewTrackThreshold = min(t.HighThreshold+0.1, 1)
	}
	if t.TrackBuffer == 0 {
		t.TrackBuffer = DefaultTrackBuffer
	}
	if t.BufferScale == 0 {
		t.BufferScale = DefaultBufferScale
	}
	if t.MaxLostAge == 0 {
		t.MaxLostAge = DefaultMaxLostAge
	}
	if t.AppearanceThreshold == 0 {
		t.AppearanceThreshold = DefaultAppearanceThreshold
	}
	if !(t.LowThreshold > 0 && t.LowThreshold <= t.HighThreshold && t.HighThreshold <= t.NewTrackThreshold && t.NewTrackThreshold <= 1) {
		return fmt.Errorf("open tracker: scores must rise from low to high to new, within 0 and 1; they are %v, %v, %v", t.LowThreshold, t.HighThreshold,
			t.NewTrackThreshold)
	}
	if t.Width < 0 || t.Height < 0 {
		return fmt.Errorf("open tracker: image of %dx%d", t.Width, t.Height)
	}
	if t.TrackBuffer < 0 {
		return fmt.Errorf("open tracker: tracks cannot be kept for %v", t.TrackBuffer)
	}
	if !(t.BufferScale > 0 && t.BufferScale <= 10) {
		return fmt.Errorf("open tracker: a reach of %v standard deviations; 10 are the most", t.BufferScale)
	}
	if t.MaxLostAge < 0 || !(t.AppearanceThreshold > -1 && t.AppearanceThreshold < 1) {
		return fmt.Errorf("open tracker: objects cannot be known again for %v from a cosine of %v on", t.MaxLostAge, t.AppearanceThreshold)
	}
	for class, gate := range t.Classes {
		if !(gate.HighThreshold >= 0 && gate.HighThreshold <= 1 && gate.NewTrackThreshold >= 0 && gate.NewTrackThreshold <= 1 && gate.TrackBuffer >= 0 && gate.MinWidth >= 0 &&
			gate.MinHeight >= 0) {
			return fmt.Errorf("open tracker: gate of class %d has a value out of range: %+v", class, gate)
		}
	}
	t.next, t.started, t.motionKnown, t.at = 0, false, false, time.Time{}
	t.objects, t.tracks = t.objects[:0], t.tracks[:0]
	t.resetAppearance()
	return nil
}

func (t *Tracker) classSettings(class int) ClassSettings {
	gate := t.Classes[class]
	if gate.HighThreshold == 0 {
		gate.HighThreshold = t.HighThreshold
	}
	if gate.NewTrackThreshold == 0 {
		gate.NewTrackThreshold = max(t.NewTrackThreshold, gate.HighThreshold)
	}
	if gate.TrackBuffer == 0 {
		gate.TrackBuffer = t.TrackBuffer
	}
	return gate
}

// Update takes the detections of a frame captured at that time and returns the tracks, oldest first: active, tentative and lost ones, and
// those that just ended; a tentative one that was not confirmed goes without a word. The result is valid until the next call. A time that
// does not advance counts as the time before.
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
		t.compensateJump()
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
	t.resolveUnmatched()
	t.matchOccluded(detections)
	for _, i := range t.unmatchedOf(t.high) {
		if detections[i].Score >= t.classSettings(detections[i].Class).NewTrackThreshold {
			t.start(&detections[i], i)
		}
	}
	t.started = true
	if t.embeddingSize > 0 {
		t.reidentify()
	}
	return t.report()
}

// Predict moves the tracks on to a frame that was not looked at and returns them as Update does, with predicted boxes. States stay as
// they are: a frame that was not looked at loses nobody.
func (t *Tracker) Predict(at time.Time) []postprocess.Track {
	t.removeEnded()
	t.predictAll(at)
	return t.report()
}

// Reset forgets every object, as when the images have stopped; ids go on.
func (t *Tracker) Reset() {
	t.objects, t.tracks, t.started = t.objects[:0], t.tracks[:0], false
	t.resetAppearance()
}

// removeEnded drops the tracks that the last result reported as ended, but for what they looked like.
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

// predictAll predicts every object at that time.
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
		o.motion.predict(steps, o.State == postprocess.Lost)
		if o.State == postprocess.Lost {
			o.occluded.predict(steps, true)
		}
		o.predicted = o.motion.box()
		o.Box = o.predicted
		if t.at.Sub(o.Last) > o.maxLost || (o.State == postprocess.Lost && t.outsideImage(&o.motion)) {
			o.State = postprocess.Ended
		}
	}
}

// outsideImage reports whether a predicted centre is off the image.
func (t *Tracker) outsideImage(m *kalmanBox) bool {
	if t.Width == 0 || t.Height == 0 {
		return false
	}
	return m.x.position < 0 || m.y.position < 0 || m.x.position > float32(t.Width) || m.y.position > float32(t.Height)
}

// match takes a detection as the object's.
func (o *object) match(d *postprocess.Detection, index int, at time.Time) {
	o.motion.update(d.Box, d.Score)
	o.unoccluded.update(d.Box, &o.motion, float32(at.Sub(o.Last).Seconds()/step))
	o.Box, o.Score, o.Detail, o.Index, o.State, o.Last = d.Box, d.Score, d.Detail, index, postprocess.Active, at
	o.Hits++
	o.confirmed = true
	o.vote(d.Class, d.Score)
}

// vote counts a class by its scores. A class that finds no room takes the place of the weakest.
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

// resolveUnmatched decides what becomes of the objects without a detection.
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
	// An object that was found again beside its own lost track is one object: the longer history stays.
	for i := range t.objects {
		if t.objects[i].State != postprocess.Lost {
			continue
		}
		for j := range t.objects {
			a, b := &t.objects[i], &t.objects[j]
			if b.State != postprocess.Active || a.Class != b.Class || a.Box.IoU(b.Box) <= duplicateOverlap {
				continue
			}
			if a.Last.Sub(a.First) > b.Last.Sub(b.First) {
				a, b = b, a
			}
			a.State = postprocess.Ended
			t.releaseAppearance(&a.appearance) // it is still there
			break
		}
	}
}

func (t *Tracker) start(d *postprocess.Detection, index int) {
	t.next++
	state := postprocess.Tentative
	if !t.started {
		// What is there when the tracker starts needs no second look.
		state = postprocess.Active
	}
	t.objects = append(t.objects, object{
		Track:     postprocess.Track{ID: t.next, Detection: *d, State: state, Index: index, Hits: 1, First: t.at, Last: t.at},
		maxLost:      t.classSettings(d.Class).TrackBuffer,
		confirmed: !t.started,
		undecided:      t.embeddingSize > 0 && t.canReidentify(),
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
