package track

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// What two boxes must share to be the same object. Scores weigh in where detections compete for new and well-seen tracks.
const (
	firstOverlap     = 0.2
	secondOverlap    = 0.15
	tentativeOverlap = 0.3
	withinOverlap    = 0.5
	duplicateOverlap = 0.95
	sameThing        = 0.75 // two detections of different classes that share this much are one object
	similar          = 0.35 // difference of a side
	otherClass       = 0.5  // weight of a detection of another class
)

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
		case d.Score >= gate.HighThreshold:
			t.high = append(t.high, i)
		case d.Score >= t.LowThreshold:
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
		x, y := o.motion.unsure()
		x, y = t.BufferScale*x, t.BufferScale*y
		place := widened(o.predicted, x, y)
		for _, j := range candidates {
			d := &detections[j]
			// Most pairs lie far apart; a pair without a positive weight is never made.
			if d.X1-x >= place.X2 || d.X2+x <= place.X1 || d.Y1-y >= place.Y2 || d.Y2+y <= place.Y1 {
				t.weights = append(t.weights, 0)
				continue
			}
			overlap := place.IoU(widened(d.Box, x, y))
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
		o := &t.objects[i]
		place := o.behind.box()
		for _, j := range left {
			d := &detections[j]
			weight := within(d.Box, place) - withinOverlap
			if d.Class != o.Class {
				weight *= otherClass
				// Half an object is easily taken for another class, but what hides it leaves one of its sides.
				likeWidth := abs(d.Width()-place.Width()) < similar*place.Width()
				likeHeight := abs(d.Height()-place.Height()) < similar*place.Height()
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
			o := &t.objects[t.rest[row]]
			o.motion = o.behind
			o.see(&detections[left[column]], left[column], t.at)
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
