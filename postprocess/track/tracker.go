// Package track follows objects from frame to frame: it gives every detection of the same object the same number.
package track

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/internal/assignment"
)

// Gate is what one class needs to be tracked; zero fields take the tracker's.
type Gate struct {
	// HighScore, NewScore and Keep are Tracker's, for this class.
	HighScore, NewScore float32
	Keep                time.Duration
	// MinWidth and MinHeight are the smallest box that is looked at, in pixels.
	MinWidth, MinHeight float32
}

// What Open puts where a Tracker's field is zero.
const (
	DefaultHighScore = 0.25
	DefaultLowScore  = 0.1
	DefaultKeep      = time.Second
)

// Tracker is ByteTrack (Zhang et al., 2022): detections with a high score are matched first, to the predicted boxes of all tracks; those with a
// low score may then go on with tracks that are still without one, which carries objects through occlusion. A Kalman filter with
// constant velocity predicts; it works in time, not in frames, so that dropped frames and changing rates do no harm. When most
// objects jump the same way the camera moved, and tracks without a detection are moved along.
//
// Feed it everything down to LowScore: a decoder that cuts at a higher score takes away the second chance.
//
// Set the fields, call Open, then Update or Predict for each frame in order of time, from one goroutine. It allocates nothing once it has
// seen the largest number of objects.
type Tracker struct {
	// HighScore is the lowest score of the first matching, LowScore of the second; NewScore is what a detection needs to start a track,
	// 0 for a tenth more than HighScore.
	HighScore, LowScore, NewScore float32
	// Keep is how long a track may be lost before it ends, 0 for a second.
	Keep time.Duration
	// Width and Height are the picture's, in pixels: a lost track ends when its predicted centre leaves the picture. 0 means unknown. They
	// may be set between two frames.
	Width, Height int
	// StrictClasses never matches a detection to a track of another class. Without it another class only counts half, so that a
	// detector that wavers between two classes does not break the track.
	StrictClasses bool
	// Gates are exceptions by class.
	Gates map[int]Gate

	// Set by Open, then the goroutine that calls Update.
	next    uint64
	begun   bool
	at      time.Time
	objects []object
	tracks  []postprocess.Track

	// Scratch of one Update.
	high, low, left []int // numbers of detections
	pool, rest      []int // numbers of objects
	taken           []bool
	weights         []float64
	solver          assignment.Solver
	shiftX, shiftY  []float32
}

// votes is how many classes one object's votes are counted for; more than three is noise.
const votes = 4

type ballot struct {
	class  int
	weight float32
}

// object is a track with what the tracker alone needs.
type object struct {
	postprocess.Track
	motion    motion
	whole     whole
	predicted postprocess.Box
	ballots   [votes]ballot
	keep      time.Duration
	confirmed bool
}

// Open checks the configuration and forgets everything; ids start again.
func (t *Tracker) Open() error {
	if t.HighScore == 0 {
		t.HighScore = DefaultHighScore
	}
	if t.LowScore == 0 {
		t.LowScore = min(DefaultLowScore, t.HighScore)
	}
	if t.NewScore == 0 {
		t.NewScore = min(t.HighScore+0.1, 1)
	}
	if t.Keep == 0 {
		t.Keep = DefaultKeep
	}
	if !(t.LowScore > 0 && t.LowScore <= t.HighScore && t.HighScore <= t.NewScore && t.NewScore <= 1) {
		return fmt.Errorf("open tracker: scores must rise from low to high to new, within 0 and 1; they are %v, %v, %v", t.LowScore, t.HighScore, t.NewScore)
	}
	if t.Width < 0 || t.Height < 0 {
		return fmt.Errorf("open tracker: picture of %dx%d", t.Width, t.Height)
	}
	if t.Keep < 0 {
		return fmt.Errorf("open tracker: tracks cannot be kept for %v", t.Keep)
	}
	for class, gate := range t.Gates {
		if !(gate.HighScore >= 0 && gate.HighScore <= 1 && gate.NewScore >= 0 && gate.NewScore <= 1 && gate.Keep >= 0 && gate.MinWidth >= 0 && gate.MinHeight >= 0) {
			return fmt.Errorf("open tracker: gate of class %d has a value out of range: %+v", class, gate)
		}
	}
	t.next, t.begun, t.at = 0, false, time.Time{}
	t.objects, t.tracks = t.objects[:0], t.tracks[:0]
	return nil
}

func (t *Tracker) gate(class int) Gate {
	gate := t.Gates[class]
	if gate.HighScore == 0 {
		gate.HighScore = t.HighScore
	}
	if gate.NewScore == 0 {
		gate.NewScore = max(t.NewScore, gate.HighScore)
	}
	if gate.Keep == 0 {
		gate.Keep = t.Keep
	}
	return gate
}

// What two boxes must share to be the same object. Scores weigh in where detections compete for new and well-seen tracks.
const (
	firstOverlap     = 0.2
	secondOverlap    = 0.5
	tentativeOverlap = 0.3
	withinOverlap    = 0.5
	duplicateOverlap = 0.85
	sameThing        = 0.75 // two detections of different classes that share this much are one object
	similar          = 0.35 // difference of a side
	otherClass       = 0.5  // weight of a detection of another class
)

// Update takes the detections of a frame captured at that time and returns the tracks, oldest first: active, tentative and lost ones, and those
// that just ended; a tentative one that was not confirmed goes without a word. The result is valid until the next call. A time that does not advance counts as the time before.
func (t *Tracker) Update(at time.Time, detections []postprocess.Detection) []postprocess.Track {
	t.forget()
	t.advance(at)
	t.sort(detections)
	t.pool = t.pool[:0]
	for i := range t.objects {
		if state := t.objects[i].State; state == postprocess.Active || state == postprocess.Lost {
			t.pool = append(t.pool, i)
		}
	}
	t.match(detections, t.pool, t.high, firstOverlap, true)
	t.followCamera()

	t.rest = t.rest[:0]
	for _, i := range t.pool {
		if o := &t.objects[i]; o.Index < 0 && o.State == postprocess.Active {
			t.rest = append(t.rest, i)
		}
	}
	t.match(detections, t.rest, t.low, secondOverlap, false)

	t.rest = t.rest[:0]
	for i := range t.objects {
		if t.objects[i].State == postprocess.Tentative {
			t.rest = append(t.rest, i)
		}
	}
	t.match(detections, t.rest, t.free(t.high), tentativeOverlap, true)
	t.settle()
	t.reappear(detections)
	for _, i := range t.free(t.high) {
		if detections[i].Score >= t.gate(detections[i].Class).NewScore {
			t.start(&detections[i], i)
		}
	}
	t.begun = true
	return t.report()
}

// Predict moves the tracks on to a frame that was not looked at and returns them as Update does, with predicted boxes. States stay as
// they are: a frame that was not looked at loses nobody.
func (t *Tracker) Predict(at time.Time) []postprocess.Track {
	t.forget()
	t.advance(at)
	return t.report()
}

// forget drops the tracks that the last result reported as ended.
func (t *Tracker) forget() {
	t.objects = slices.DeleteFunc(t.objects, func(o object) bool { return o.State == postprocess.Ended })
}

// advance predicts every object at that time.
func (t *Tracker) advance(at time.Time) {
	steps := float32(0)
	if t.begun && at.After(t.at) {
		steps = float32(at.Sub(t.at).Seconds() / step)
	}
	if !t.begun || at.After(t.at) {
		t.at = at
	}
	for i := range t.objects {
		o := &t.objects[i]
		o.Index = -1
		o.motion.predict(steps, o.State == postprocess.Lost)
		o.predicted = o.motion.box()
		o.Box = o.predicted
		if t.at.Sub(o.Last) > o.keep || (o.State == postprocess.Lost && t.outside(&o.motion)) {
			o.State = postprocess.Ended
		}
	}
}

// outside reports whether a predicted centre is off the picture.
func (t *Tracker) outside(m *motion) bool {
	if t.Width == 0 || t.Height == 0 {
		return false
	}
	return m.x.position < 0 || m.y.position < 0 || m.x.position > float32(t.Width) || m.y.position > float32(t.Height)
}

// sort splits the detections by their score. Broken ones are left out, and so are second guesses at the class of an object.
func (t *Tracker) sort(detections []postprocess.Detection) {
	t.high, t.low = t.high[:0], t.low[:0]
	t.taken = t.taken[:0]
	for i := range detections {
		d := &detections[i]
		t.taken = append(t.taken, false)
		gate := t.gate(d.Class)
		w, h := d.Width(), d.Height()
		if !(w > 0 && h > 0 && w >= gate.MinWidth && h >= gate.MinHeight) || math.IsInf(float64(w), 0) || math.IsInf(float64(h), 0) {
			continue
		}
		switch {
		case secondGuess(detections, i):
		case d.Score >= gate.HighScore:
			t.high = append(t.high, i)
		case d.Score >= t.LowScore:
			t.low = append(t.low, i)
		}
	}
}

// secondGuess reports whether another class has the same box with a higher score, as detectors give for objects that they cannot tell
// apart; suppression by class keeps both.
func secondGuess(detections []postprocess.Detection, i int) bool {
	d := &detections[i]
	reach := (1 - sameThing) / sameThing * d.Width()
	for j := range detections {
		other := &detections[j]
		if abs(other.X1-d.X1) > reach || other.Class == d.Class || other.Score < d.Score || (other.Score == d.Score && j > i) {
			continue
		}
		if other.IoU(d.Box) > sameThing {
			return true
		}
	}
	return false
}

// free lists the detections that no track has taken.
func (t *Tracker) free(detections []int) []int {
	t.left = t.left[:0]
	for _, i := range detections {
		if !t.taken[i] {
			t.left = append(t.left, i)
		}
	}
	return t.left
}

// match pairs objects with detections so that the overlaps beyond the limit add up to the most.
func (t *Tracker) match(detections []postprocess.Detection, objects, candidates []int, limit float32, scored bool) {
	if len(objects) == 0 || len(candidates) == 0 {
		return
	}
	t.weights = t.weights[:0]
	for _, i := range objects {
		o := &t.objects[i]
		for _, j := range candidates {
			d := &detections[j]
			overlap := o.predicted.IoU(d.Box)
			if scored {
				overlap *= d.Score
			}
			if d.Class != o.Class {
				if t.StrictClasses {
					overlap = 0
				}
				overlap *= otherClass
			}
			t.weights = append(t.weights, float64(overlap-limit))
		}
	}
	for row, column := range t.solver.Maximize(t.weights, len(objects), len(candidates)) {
		if column < 0 {
			continue
		}
		j := candidates[column]
		t.taken[j] = true
		t.objects[objects[row]].see(&detections[j], j, t.at)
	}
}

// see takes a detection as the object's.
func (o *object) see(d *postprocess.Detection, index int, at time.Time) {
	o.motion.update(d.Box)
	o.whole.see(d.Box, &o.motion, float32(at.Sub(o.Last).Seconds()/step))
	o.Box, o.Score, o.Index, o.State, o.Last = d.Box, d.Score, index, postprocess.Active, at
	o.Hits++
	o.confirmed = true
	o.vote(d.Class, d.Score)
}

// vote counts a class by its scores. A class that finds no room takes the place of the weakest.
func (o *object) vote(class int, score float32) {
	weakest := 0
	for i := range o.ballots {
		if o.ballots[i].weight > 0 && o.ballots[i].class == class {
			weakest = i
			break
		}
		if o.ballots[i].weight < o.ballots[weakest].weight {
			weakest = i
		}
	}
	b := &o.ballots[weakest]
	if b.class != class {
		*b = ballot{class: class}
	}
	b.weight += score
	best := b
	for i := range o.ballots {
		if o.ballots[i].class == o.Class && o.ballots[i].weight >= best.weight {
			best = &o.ballots[i]
		}
	}
	o.Class = best.class
}

// followCamera moves the tracks without a detection by as much as the others jumped, when those agree.
func (t *Tracker) followCamera() {
	const agreeing = 3
	t.shiftX, t.shiftY = t.shiftX[:0], t.shiftY[:0]
	side := float32(0)
	for _, i := range t.pool {
		if o := &t.objects[i]; o.Index >= 0 {
			t.shiftX = append(t.shiftX, (o.X1+o.X2-o.predicted.X1-o.predicted.X2)/2)
			t.shiftY = append(t.shiftY, (o.Y1+o.Y2-o.predicted.Y1-o.predicted.Y2)/2)
			side += o.Width() + o.Height()
		}
	}
	n := len(t.shiftX)
	if n < agreeing || n == len(t.pool) {
		return
	}
	side /= float32(2 * n)
	x, spreadX := middle(t.shiftX)
	y, spreadY := middle(t.shiftY)
	// A jump is a movement well over the detector's noise, in which at least half of the objects take part alike.
	const noise = 0.05
	if length := abs(x) + abs(y); length < noise*side || spreadX+spreadY > length {
		return
	}
	for _, i := range t.pool {
		if o := &t.objects[i]; o.Index < 0 {
			o.motion.shift(x, y)
			o.predicted = o.motion.box()
			o.Box = o.predicted
		}
	}
}

// middle returns the median and the distance between the quartiles.
func middle(values []float32) (median, spread float32) {
	slices.Sort(values)
	n := len(values)
	return values[n/2], values[(3*n)/4] - values[n/4]
}

func abs(v float32) float32 { return max(v, -v) }

// settle decides what becomes of the objects without a detection.
func (t *Tracker) settle() {
	for i := range t.objects {
		o := &t.objects[i]
		switch {
		case o.Index >= 0:
		case o.State == postprocess.Tentative:
			o.State = postprocess.Ended
		case o.State == postprocess.Active:
			o.State = postprocess.Lost
			o.whole.restore(&o.motion)
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
				b.State = postprocess.Ended
			} else {
				a.State = postprocess.Ended
			}
			break
		}
	}
}

// reappear gives detections that no track took to lost objects that are coming out from behind something: the visible part lies within the
// place of the whole.
func (t *Tracker) reappear(detections []postprocess.Detection) {
	t.rest = t.rest[:0]
	for i := range t.objects {
		if o := &t.objects[i]; o.State == postprocess.Lost && o.whole.known {
			t.rest = append(t.rest, i)
		}
	}
	left := t.free(t.high)
	if len(t.rest) == 0 || len(left) == 0 {
		return
	}
	t.weights = t.weights[:0]
	for _, i := range t.rest {
		for _, j := range left {
			o, d := &t.objects[i], &detections[j]
			weight := within(d.Box, o.predicted) - withinOverlap
			if d.Class != o.Class {
				weight *= otherClass
				// Half an object is easily taken for another class, but what hides it leaves one of its sides.
				likeWidth := abs(d.Width()-o.predicted.Width()) < similar*o.predicted.Width()
				likeHeight := abs(d.Height()-o.predicted.Height()) < similar*o.predicted.Height()
				if t.StrictClasses || (!likeWidth && !likeHeight) {
					weight = 0
				}
			}
			t.weights = append(t.weights, float64(weight))
		}
	}
	for row, column := range t.solver.Maximize(t.weights, len(t.rest), len(left)) {
		if column >= 0 {
			t.taken[left[column]] = true
			t.objects[t.rest[row]].see(&detections[left[column]], left[column], t.at)
		}
	}
}

// within is the share of a box that lies in another one.
func within(b, place postprocess.Box) float32 {
	width := min(b.X2, place.X2) - max(b.X1, place.X1)
	height := min(b.Y2, place.Y2) - max(b.Y1, place.Y1)
	if width <= 0 || height <= 0 {
		return 0
	}
	return width * height / b.Area()
}

func (t *Tracker) start(d *postprocess.Detection, index int) {
	t.next++
	state := postprocess.Tentative
	if !t.begun {
		// What is there when the tracker starts needs no second look.
		state = postprocess.Active
	}
	t.objects = append(t.objects, object{
		Track:     postprocess.Track{ID: t.next, Detection: *d, State: state, Index: index, Hits: 1, First: t.at, Last: t.at},
		keep:      t.gate(d.Class).Keep,
		confirmed: !t.begun,
	})
	o := &t.objects[len(t.objects)-1]
	o.motion.start(d.Box)
	o.whole.start(d.Box)
	o.ballots[0] = ballot{d.Class, d.Score}
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
	}
	return t.tracks
}
