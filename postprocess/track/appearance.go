package track

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// What Open puts where a Tracker's field is zero. Alike lies between the cosines that an OSNet gives for two images of one person and for
// those of two persons.
const (
	DefaultMaxLostAge          = 30 * time.Second
	DefaultAppearanceThreshold = 0.7
)

// mostGone bounds how many objects that have gone are remembered; for one more the first of them is forgotten.
const mostGone = 64

// undecided is how long a new object may wait for a look at it before it counts as one that was never there.
const undecided = 500 * time.Millisecond

// How long the memory of looks reaches, in seconds; for how long an object may not look like itself before it is another one; and for how
// long a new one may still turn out to be one that was there before.
const (
	memorable = 5.0
	doubtful  = 300 * time.Millisecond
	young     = time.Second
)

// dimmest is how much of a score a look counts at the score that just starts a track; it rises with the score.
const dimmest = 0.05

// looks are what an object looks like: the mean of its vectors, of length 1, those weighing more that show more of it and are newer.
type looks struct {
	mean   []float32
	weight float64         // of all vectors, up to what is remembered
	at     time.Time       // of the last look
	box    postprocess.Box // then
}

func (l *looks) known() bool { return l.weight > 0 }

// gone is an object that may come back, as of its last detection.
type gone struct {
	postprocess.Track
	looks looks
}

// Appear tells how a track of the last result looks: a vector of length 1 from a network that embeds, which points the same way for all
// images of one object. Call it between two Updates; looks may be seldom and late, and those of every frame do no harm. One at a box
// whose score would start no track is left out, as it shows what hides the object too.
//
// Looks decide two things. A new track that could be one of those that are lost, or ended up to Recall ago, is Tentative until it was
// looked at, for half a second at most; if in its first second it looks like one of those that could have come that far, it goes on with
// the number, First and Hits of that one. And a track that has not looked like itself for a while is another object, which motion took for
// it: it gets a new number, or that of whom it looks like, and who it was before may come back. What does not look like an object is not
// learned.
func (t *Tracker) UpdateEmbedding(track uint64, vector []float32) {
	i, known := slices.BinarySearchFunc(t.objects, track, func(o object, id uint64) int { return cmp.Compare(o.ID, id) })
	if !known || len(vector) == 0 || t.objects[i].Score < t.gate(t.objects[i].Class).NewTrackThreshold {
		return
	}
	if len(vector) != t.numbers { // of another network
		t.forgetLooks()
		t.numbers = len(vector)
	}
	o := &t.objects[i]
	switch {
	case !o.looks.known() || t.young(o):
		t.see(&o.looks, o, vector)
	case cosine(o.looks.mean, vector) >= t.AppearanceThreshold:
		t.see(&o.looks, o, vector)
		t.release(&o.doubts)
	default:
		t.see(&o.doubts, o, vector)
		if t.at.Sub(o.looks.at) >= doubtful {
			t.part(i)
		}
	}
}

// young reports whether an object may still be one that was there before.
func (t *Tracker) young(o *object) bool { return !o.recalled && t.at.Sub(o.First) < young }

// see takes a look at an object into a mean. A look weighs by its score and, once there are many, by the time since the one before: how
// often an object is looked at does not matter.
func (t *Tracker) see(l *looks, o *object, vector []float32) {
	least := t.gate(o.Class).NewTrackThreshold
	weight := float64((o.Score - least + dimmest) / (1 - least + dimmest))
	share := float32(1)
	if l.known() {
		passed := min(t.at.Sub(l.at).Seconds(), 1) // a gap teaches nothing
		share = float32(max(weight/(l.weight+weight), 1-math.Exp(-weight*passed/memorable)))
	} else {
		l.mean = t.unused()
	}
	l.weight, l.at, l.box = l.weight+weight, t.at, o.Box
	for k, v := range vector {
		l.mean[k] += share * (v - l.mean[k])
	}
	if length := math.Sqrt(float64(cosine(l.mean, l.mean))); length > 0 {
		for k := range l.mean {
			l.mean[k] /= float32(length)
		}
	}
}

// part makes an object the one that it looks like now; who it was before is gone.
func (t *Tracker) part(i int) {
	o := t.objects[i]
	before := o.Track
	before.Last = o.looks.at
	t.remember(&before, &o.looks)
	t.next++
	o.ID, o.First, o.Hits, o.held, o.recalled = t.next, t.at, 1, true, false
	o.looks, o.doubts = o.doubts, looks{}
	t.objects = append(slices.Delete(t.objects, i, i+1), o) // the highest number is the last
}

// unused is memory for a mean, all 0.
func (t *Tracker) unused() []float32 {
	if len(t.means) == 0 {
		return make([]float32, t.numbers)
	}
	mean := t.means[len(t.means)-1]
	t.means = t.means[:len(t.means)-1]
	clear(mean)
	return mean
}

// release gives the memory of looks back.
func (t *Tracker) release(l *looks) {
	if l.known() {
		t.means = append(t.means, l.mean)
	}
	*l = looks{}
}

// forgetLooks forgets what everybody looked like.
func (t *Tracker) forgetLooks() {
	for i := range t.objects {
		t.objects[i].looks, t.objects[i].doubts = looks{}, looks{}
	}
	t.gone, t.means, t.numbers = nil, nil, 0
}

// remember keeps one that is gone, and takes its looks.
func (t *Tracker) remember(track *postprocess.Track, l *looks) {
	if len(t.gone) == mostGone {
		t.drop(0)
	}
	t.gone = append(t.gone, gone{*track, *l})
	*l = looks{}
}

// drop forgets one of those that are gone.
func (t *Tracker) drop(i int) {
	t.release(&t.gone[i].looks)
	t.gone = slices.Delete(t.gone, i, i+1)
}

// recallable reports whether a new object could be one that was there before.
func (t *Tracker) recallable() bool {
	return len(t.gone) > 0 || slices.ContainsFunc(t.objects, func(o object) bool { return o.State == postprocess.Lost && o.looks.known() })
}

// recall settles who the new objects are, those first that look most alike.
func (t *Tracker) recall() {
	for i := len(t.gone) - 1; i >= 0; i-- {
		if t.at.Sub(t.gone[i].Last) > t.MaxLostAge {
			t.drop(i)
		}
	}
	for t.recallOne() {
		continue
	}
	for i := range t.objects {
		if o := &t.objects[i]; o.held && o.State == postprocess.Active && (o.looks.known() || t.at.Sub(o.First) >= undecided) {
			o.held = false
		}
	}
}

// recallOne gives one new object the number of whom it looks like.
func (t *Tracker) recallOne() bool {
	best, found, lost, ended := t.AppearanceThreshold, -1, -1, -1
	for i := range t.objects {
		o := &t.objects[i]
		if o.State != postprocess.Active || !o.looks.known() || !(o.held || t.young(o)) {
			continue
		}
		for j := range t.objects {
			if other := &t.objects[j]; other.State == postprocess.Lost && other.looks.known() && o.follows(&other.Track, &other.looks) {
				if alike := cosine(o.looks.mean, other.looks.mean); alike >= best {
					best, found, lost, ended = alike, i, j, -1
				}
			}
		}
		for j := range t.gone {
			if other := &t.gone[j]; o.follows(&other.Track, &other.looks) {
				if alike := cosine(o.looks.mean, other.looks.mean); alike >= best {
					best, found, lost, ended = alike, i, -1, j
				}
			}
		}
	}
	switch {
	case found < 0:
		return false
	case lost >= 0:
		o, other := &t.objects[found], &t.objects[lost]
		number := o.ID
		o.comeBack(&other.Track, &other.looks)
		t.release(&other.looks)
		other.ID, other.State, other.confirmed = number, postprocess.Ended, false // goes without a word
	default:
		t.objects[found].comeBack(&t.gone[ended].Track, &t.gone[ended].looks)
		t.drop(ended)
	}
	slices.SortFunc(t.objects, func(a, b object) int { return cmp.Compare(a.ID, b.ID) })
	return true
}

// follows reports whether one that was there before can have come to where this one is. Who stood still goes no farther than its longer
// side in a second.
func (o *object) follows(before *postprocess.Track, remembered *looks) bool {
	if o.Class != before.Class {
		return false
	}
	const slack, pace = 0.5, 1.0 // sides, sides a second
	a, b := &o.looks.box, &remembered.box
	side := float64(max(a.Width(), a.Height(), b.Width(), b.Height()))
	way := math.Hypot(float64(a.X1+a.X2-b.X1-b.X2), float64(a.Y1+a.Y2-b.Y1-b.Y2)) / 2
	speed := pace*side + math.Hypot(float64(before.VX), float64(before.VY))
	return way <= slack*side+speed*o.looks.at.Sub(remembered.at).Seconds()
}

// comeBack makes a new object the one that it was before, whose longer memory of looks stays.
func (o *object) comeBack(before *postprocess.Track, remembered *looks) {
	o.ID, o.First, o.Hits, o.held = before.ID, before.First, before.Hits+o.Hits, false
	o.recalled = true
	o.looks, *remembered = *remembered, o.looks
}

// cosine is that of the angle between two vectors of length 1.
func cosine(a, b []float32) float32 {
	sum := float32(0)
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
