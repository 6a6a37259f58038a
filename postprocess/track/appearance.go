package track

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// What Open puts where a Tracker's field is zero. Alike lies between the cosines that an OSNet gives for two pictures of one person and for
// those of two persons.
const (
	DefaultRecall = 30 * time.Second
	DefaultAlike  = 0.7
)

// mostGone bounds how many objects that have gone are remembered; for one more the first of them is forgotten.
const mostGone = 64

// undecided is how long a new object may wait for a look at it before it counts as one that was never there.
const undecided = 500 * time.Millisecond

// newest is the share of a look in the mean of all, that of BoT-SORT, once there are so many that their plain mean would give it less.
const newest = 0.1

// looks are what an object looks like: the exponential mean of its vectors, of length 1.
type looks struct {
	mean  []float32
	count int
}

// gone is an object that may come back, as of its last detection.
type gone struct {
	postprocess.Track
	looks looks
}

// Appear tells how a track of the last result looks: a vector of length 1 from a network that embeds, which points the same way for all
// pictures of one object. Call it between two Updates; looks may be seldom and late. One at a box whose score would start no track is left
// out, as it shows what hides the object too.
//
// Looks decide two things. A new track that could be one of those that are lost, or ended up to Recall ago, is Tentative until it was
// looked at, for half a second at most; then it goes on with the number, First and Hits of the one that it looks like, if there is one. And
// a lost track that motion alone has found again is another object where it does not look like itself: it gets a new number, or that of
// whom it looks like, and the one that was lost may still come back.
func (t *Tracker) Appear(track uint64, vector []float32) {
	i, known := slices.BinarySearchFunc(t.objects, track, func(o object, id uint64) int { return cmp.Compare(o.ID, id) })
	if !known || len(vector) == 0 || t.objects[i].Score < t.gate(t.objects[i].Class).NewScore {
		return
	}
	if len(vector) != t.numbers { // of another network
		t.forgetLooks()
		t.numbers = len(vector)
	}
	if o := &t.objects[i]; o.found && o.looks.count > 0 && cosine(o.looks.mean, vector) < t.Alike {
		i = t.part(i)
	}
	o := &t.objects[i]
	o.found = false
	t.see(&o.looks, vector)
}

// see takes a look into the mean.
func (t *Tracker) see(l *looks, vector []float32) {
	if l.count == 0 {
		l.mean = t.unused()
	}
	l.count++
	share := max(1/float32(l.count), newest)
	for k, v := range vector {
		l.mean[k] += share * (v - l.mean[k])
	}
	if length := math.Sqrt(float64(cosine(l.mean, l.mean))); length > 0 {
		for k := range l.mean {
			l.mean[k] /= float32(length)
		}
	}
}

// part makes an object another one than it was before it was lost, and gives its new place in the list.
func (t *Tracker) part(i int) int {
	o := t.objects[i]
	before := o.Track
	before.Last = o.lost
	t.remember(&before, &o.looks)
	t.next++
	o.ID, o.First, o.Hits, o.held = t.next, t.at, 1, true
	t.objects = append(slices.Delete(t.objects, i, i+1), o) // the highest number is the last
	return len(t.objects) - 1
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
	if l.count > 0 {
		t.means = append(t.means, l.mean)
	}
	*l = looks{}
}

// forgetLooks forgets what everybody looked like.
func (t *Tracker) forgetLooks() {
	for i := range t.objects {
		t.objects[i].looks = looks{}
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
	return len(t.gone) > 0 || slices.ContainsFunc(t.objects, func(o object) bool { return o.State == postprocess.Lost && o.looks.count > 0 })
}

// recall settles who the held objects are, those first that look most alike.
func (t *Tracker) recall() {
	for i := len(t.gone) - 1; i >= 0; i-- {
		if t.at.Sub(t.gone[i].Last) > t.Recall {
			t.drop(i)
		}
	}
	for t.recallOne() {
		continue
	}
	for i := range t.objects {
		if o := &t.objects[i]; o.held && o.State == postprocess.Active && (o.looks.count > 0 || t.at.Sub(o.First) >= undecided) {
			o.held = false
		}
	}
}

// recallOne gives one held object the number of whom it looks like.
func (t *Tracker) recallOne() bool {
	best, held, lost, ended := t.Alike, -1, -1, -1
	for i := range t.objects {
		o := &t.objects[i]
		if !o.held || o.State != postprocess.Active || o.looks.count == 0 {
			continue
		}
		for j := range t.objects {
			if other := &t.objects[j]; other.State == postprocess.Lost && other.Class == o.Class && other.looks.count > 0 {
				if alike := cosine(o.looks.mean, other.looks.mean); alike >= best {
					best, held, lost, ended = alike, i, j, -1
				}
			}
		}
		for j := range t.gone {
			if other := &t.gone[j]; other.Class == o.Class {
				if alike := cosine(o.looks.mean, other.looks.mean); alike >= best {
					best, held, lost, ended = alike, i, -1, j
				}
			}
		}
	}
	switch {
	case held < 0:
		return false
	case lost >= 0:
		o, other := &t.objects[held], &t.objects[lost]
		number := o.ID
		o.comeBack(&other.Track, &other.looks)
		t.release(&other.looks)
		other.ID, other.State, other.confirmed = number, postprocess.Ended, false // goes without a word
	default:
		t.objects[held].comeBack(&t.gone[ended].Track, &t.gone[ended].looks)
		t.drop(ended)
	}
	slices.SortFunc(t.objects, func(a, b object) int { return cmp.Compare(a.ID, b.ID) })
	return true
}

// comeBack makes a held object the one that it was before, whose longer memory of looks stays.
func (o *object) comeBack(before *postprocess.Track, remembered *looks) {
	o.ID, o.First, o.Hits, o.held = before.ID, before.First, before.Hits+o.Hits, false
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
