package track

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Minimum overlaps of a match. Scores are multiplied in where detections compete for new and recently matched tracks.
const (
	firstOverlap      = 0.1
	secondOverlap     = 0.15
	tentativeOverlap  = 0.4
	nearbyOverlap     = 0.25 // of boxes enlarged by nearbyBuffer
	withinOverlap     = 0.5
	crossClassOverlap = 0.75 // two detections of different classes that overlap this much are one object
	sideTolerance     = 0.35 // relative difference of the side that an obstacle does not cut
	otherClassWeight  = 0.5  // weight of a detection of another class
)

// splitByScore splits the detections by score, without invalid ones and duplicates in another class.
func (t *Tracker) splitByScore(detections []postprocess.Detection) {
	t.high, t.low = t.high[:0], t.low[:0]
	t.matched = t.matched[:0]
	for i := range detections {
		d := &detections[i]
		t.matched = append(t.matched, false)
		w, h := d.Width(), d.Height()
		if !(w > 0 && h > 0) || math.IsInf(float64(w), 0) || math.IsInf(float64(h), 0) {
			continue
		}
		switch {
		case duplicateOfOtherClass(detections, i):
		case d.Score >= t.HighThreshold:
			t.high = append(t.high, i)
		case d.Score >= t.LowThreshold:
			t.low = append(t.low, i)
		}
	}
}

// duplicateOfOtherClass reports whether another class has the same box with a higher score: class-wise suppression keeps both if a detector
// is undecided.
func duplicateOfOtherClass(detections []postprocess.Detection, i int) bool {
	d := &detections[i]
	reach := (1 - crossClassOverlap) / crossClassOverlap * d.Width()
	for j := range detections {
		other := &detections[j]
		if abs(other.X1-d.X1) > reach || other.Class == d.Class || other.Score < d.Score || (other.Score == d.Score && j > i) {
			continue
		}
		if other.IoU(d.Box) > crossClassOverlap {
			return true
		}
	}
	return false
}

// unmatchedOf returns the detections without a track.
func (t *Tracker) unmatchedOf(detections []int) []int {
	t.unmatched = t.unmatched[:0]
	for _, i := range detections {
		if !t.matched[i] {
			t.unmatched = append(t.unmatched, i)
		}
	}
	return t.unmatched
}

// nearbyBuffer is how far matchNearby enlarges a box to each side, as a share of that side.
const nearbyBuffer = 0.5

// associate pairs objects with detections so that the sum of the overlaps beyond the limit is maximal. scored is true for reported
// detections: the overlap is weighted with their score.
func (t *Tracker) associate(detections []postprocess.Detection, objects, candidates []int, limit float32, scored bool) {
	if len(objects) == 0 || len(candidates) == 0 {
		return
	}
	if scored {
		limit *= min(t.HighThreshold/DefaultHighThreshold, 1) // lower scores, lower products
	}
	t.weights = t.weights[:0]
	for _, i := range objects {
		o := &t.objects[i]
		place := &o.predicted
		for _, j := range candidates {
			d := &detections[j]
			// Most pairs are far apart; a pair without a positive weight is never made.
			if d.X1 >= place.X2 || d.X2 <= place.X1 || d.Y1 >= place.Y2 || d.Y2 <= place.Y1 {
				t.weights = append(t.weights, 0)
				continue
			}
			overlap := place.IoU(d.Box) * commonHeight(place, &d.Box)
			if scored {
				overlap *= d.Score
			}
			if d.Class != o.Class {
				overlap *= otherClassWeight
			}
			t.weights = append(t.weights, float64(overlap-limit))
		}
	}
	t.matchBest(detections, objects, candidates, scored)
}

// matchBest pairs objects with detections so that the sum of t.weights is maximal.
func (t *Tracker) matchBest(detections []postprocess.Detection, objects, candidates []int, scored bool) {
	for row, column := range t.solver.Maximize(t.weights, len(objects), len(candidates)) {
		if column < 0 {
			continue
		}
		j := candidates[column]
		t.matched[j] = true
		t.objects[objects[row]].match(&detections[j], j, t.at, scored)
	}
}

// commonHeight returns the height that two overlapping boxes share over the height that they span. The height of a person changes less than
// the width, and tells people apart who stand at different distances.
func commonHeight(a, b *postprocess.Box) float32 {
	return (min(a.Y2, b.Y2) - max(a.Y1, b.Y1)) / (max(a.Y2, b.Y2) - min(a.Y1, b.Y1))
}

// matchNearby matches remaining detections with the remaining objects of the previous frame, all boxes enlarged.
func (t *Tracker) matchNearby(detections []postprocess.Detection) {
	t.remaining = t.remaining[:0]
	for i := range t.objects {
		o := &t.objects[i]
		if o.Index < 0 && (o.State == postprocess.Active || o.State == postprocess.Tentative) {
			t.remaining = append(t.remaining, i)
		}
	}
	left := t.unmatchedOf(t.high)
	if len(t.remaining) == 0 || len(left) == 0 {
		return
	}
	limit := nearbyOverlap * min(t.HighThreshold/DefaultHighThreshold, 1)
	t.weights = t.weights[:0]
	for _, i := range t.remaining {
		o := &t.objects[i]
		place := enlarged(o.predicted)
		for _, j := range left {
			d := &detections[j]
			overlap := place.IoU(enlarged(d.Box)) * d.Score
			if d.Class != o.Class {
				overlap *= otherClassWeight
			}
			t.weights = append(t.weights, float64(overlap-limit))
		}
	}
	t.matchBest(detections, t.remaining, left, true)
}

// enlarged returns a box with nearbyBuffer around it.
func enlarged(b postprocess.Box) postprocess.Box {
	width, height := nearbyBuffer*b.Width(), nearbyBuffer*b.Height()
	return postprocess.Box{X1: b.X1 - width, Y1: b.Y1 - height, X2: b.X2 + width, Y2: b.Y2 + height}
}

// matchOccluded matches remaining detections with lost objects that reappear from behind an obstacle: the visible part lies within the
// predicted whole, and the obstacle leaves one of its sides.
func (t *Tracker) matchOccluded(detections []postprocess.Detection) {
	t.remaining = t.remaining[:0]
	for i := range t.objects {
		if o := &t.objects[i]; o.State == postprocess.Lost && o.unoccluded.speedKnown {
			t.remaining = append(t.remaining, i)
		}
	}
	left := t.unmatchedOf(t.high)
	if len(t.remaining) == 0 || len(left) == 0 {
		return
	}
	t.weights = t.weights[:0]
	for _, i := range t.remaining {
		o := &t.objects[i]
		place := o.occluded.box()
		for _, j := range left {
			d := &detections[j]
			weight := within(d.Box, place) - withinOverlap
			likeWidth := abs(d.Width()-place.Width()) < sideTolerance*place.Width()
			likeHeight := abs(d.Height()-place.Height()) < sideTolerance*place.Height()
			switch {
			case !likeWidth && !likeHeight:
				weight = 0
			case d.Class != o.Class:
				weight *= otherClassWeight // half an object is easily misclassified
			}
			t.weights = append(t.weights, float64(weight))
		}
	}
	for row, column := range t.solver.Maximize(t.weights, len(t.remaining), len(left)) {
		if column >= 0 {
			t.matched[left[column]] = true
			o := &t.objects[t.remaining[row]]
			o.motion = o.occluded
			o.match(&detections[left[column]], left[column], t.at, true)
		}
	}
}

// within returns the share of a box inside another one.
func within(b, place postprocess.Box) float32 {
	width := min(b.X2, place.X2) - max(b.X1, place.X1)
	height := min(b.Y2, place.Y2) - max(b.Y1, place.Y1)
	if width <= 0 || height <= 0 {
		return 0
	}
	return width * height / b.Area()
}
