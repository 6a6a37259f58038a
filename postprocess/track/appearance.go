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

// maxEnded bounds how many objects that have gone are remembered; for one more the first of them is forgotten.
const maxEnded = 64

// tentativeTimeout is how long a new object may wait for a look at it before it counts as one that was never there.
const tentativeTimeout = 500 * time.Millisecond

// How long the memory of looks reaches, in seconds; for how long an object may not look like itself before it is another one; and for how
// long a new one may still turn out to be one that was there before.
const (
	embeddingWindow = 5.0
	mismatchTimeout  = 300 * time.Millisecond
	newTrackAge     = time.Second
)

// minEmbeddingWeight is how much of a score a look counts at the score that just starts a track; it rises with the score.
const minEmbeddingWeight = 0.05

// appearance are what an object looks like: the mean of its vectors, of length 1, those weighing more that show more of it and are newer.
type appearance struct {
	mean   []float32
	weight float64         // of all vectors, up to what is remembered
	at     time.Time       // of the last look
	box    postprocess.Box // then
}

func (l *appearance) valid() bool { return l.weight > 0 }

// ended is an object that may come back, as of its last detection.
type endedTrack struct {
	postprocess.Track
	appearance appearance
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
	if !known || len(vector) == 0 || t.objects[i].Score < t.classSettings(t.objects[i].Class).NewTrackThreshold {
		return
	}
	if len(vector) != t.embeddingSize { // of another network
		t.resetAppearance()
		t.embeddingSize = len(vector)
	}
	o := &t.objects[i]
	switch {
	case !o.appearance.valid() || t.isNew(o):
		t.updateAppearance(&o.appearance, o, vector)
	case cosine(o.appearance.mean, vector) >= t.AppearanceThreshold:
		t.updateAppearance(&o.appearance, o, vector)
		t.releaseAppearance(&o.mismatch)
	default:
		t.updateAppearance(&o.mismatch, o, vector)
		if t.at.Sub(o.appearance.at) >= mismatchTimeout {
			t.splitIdentity(i)
		}
	}
}

// isNew reports whether an object may still be one that was there before.
func (t *Tracker) isNew(o *object) bool { return !o.reidentified && t.at.Sub(o.First) < newTrackAge }

// see takes a look at an object into a mean. A look weighs by its score and, once there are many, by the time since the one before: how
// often an object is looked at does not matter.
func (t *Tracker) updateAppearance(l *appearance, o *object, vector []float32) {
	least := t.classSettings(o.Class).NewTrackThreshold
	weight := float64((o.Score - least + minEmbeddingWeight) / (1 - least + minEmbeddingWeight))
	share := float32(1)
	if l.valid() {
		passed := min(t.at.Sub(l.at).Seconds(), 1) // a gap teaches nothing
		share = float32(max(weight/(l.weight+weight), 1-math.Exp(-weight*passed/embeddingWindow)))
	} else {
		l.mean = t.newMean()
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

// splitIdentity makes an object the one that it looks like now; who it was before is gone.
func (t *Tracker) splitIdentity(i int) {
	o := t.objects[i]
	before := o.Track
	before.Last = o.appearance.at
	t.addEnded(&before, &o.appearance)
	t.next++
	o.ID, o.First, o.Hits, o.undecided, o.reidentified = t.next, t.at, 1, true, false
	o.appearance, o.mismatch = o.mismatch, appearance{}
	t.objects = append(slices.Delete(t.objects, i, i+1), o) // the highest number is the last
}

// newMean is memory for a mean, all 0.
func (t *Tracker) newMean() []float32 {
	if len(t.freeMeans) == 0 {
		return make([]float32, t.embeddingSize)
	}
	mean := t.freeMeans[len(t.freeMeans)-1]
	t.freeMeans = t.freeMeans[:len(t.freeMeans)-1]
	clear(mean)
	return mean
}

// releaseAppearance gives the memory of looks back.
func (t *Tracker) releaseAppearance(l *appearance) {
	if l.valid() {
		t.freeMeans = append(t.freeMeans, l.mean)
	}
	*l = appearance{}
}

// resetAppearance forgets what everybody looked like.
func (t *Tracker) resetAppearance() {
	for i := range t.objects {
		t.objects[i].appearance, t.objects[i].mismatch = appearance{}, appearance{}
	}
	t.ended, t.freeMeans, t.embeddingSize = nil, nil, 0
}

// addEnded keeps one that is gone, and takes its looks.
func (t *Tracker) addEnded(track *postprocess.Track, l *appearance) {
	if len(t.ended) == maxEnded {
		t.dropEnded(0)
	}
	t.ended = append(t.ended, endedTrack{*track, *l})
	*l = appearance{}
}

// dropEnded forgets one of those that are gone.
func (t *Tracker) dropEnded(i int) {
	t.releaseAppearance(&t.ended[i].appearance)
	t.ended = slices.Delete(t.ended, i, i+1)
}

// canReidentify reports whether a new object could be one that was there before.
func (t *Tracker) canReidentify() bool {
	return len(t.ended) > 0 || slices.ContainsFunc(t.objects, func(o object) bool { return o.State == postprocess.Lost && o.appearance.valid() })
}

// reidentify settles who the new objects are, those first that look most alike.
func (t *Tracker) reidentify() {
	for i := len(t.ended) - 1; i >= 0; i-- {
		if t.at.Sub(t.ended[i].Last) > t.MaxLostAge {
			t.dropEnded(i)
		}
	}
	for t.reidentifyOne() {
		continue
	}
	for i := range t.objects {
		if o := &t.objects[i]; o.undecided && o.State == postprocess.Active && (o.appearance.valid() || t.at.Sub(o.First) >= tentativeTimeout) {
			o.undecided = false
		}
	}
}

// reidentifyOne gives one new object the number of whom it looks like.
func (t *Tracker) reidentifyOne() bool {
	best, found, lost, ended := t.AppearanceThreshold, -1, -1, -1
	for i := range t.objects {
		o := &t.objects[i]
		if o.State != postprocess.Active || !o.appearance.valid() || !(o.undecided || t.isNew(o)) {
			continue
		}
		for j := range t.objects {
			if other := &t.objects[j]; other.State == postprocess.Lost && other.appearance.valid() && o.reachableFrom(&other.Track, &other.appearance) {
				if alike := cosine(o.appearance.mean, other.appearance.mean); alike >= best {
					best, found, lost, ended = alike, i, j, -1
				}
			}
		}
		for j := range t.ended {
			if other := &t.ended[j]; o.reachableFrom(&other.Track, &other.appearance) {
				if alike := cosine(o.appearance.mean, other.appearance.mean); alike >= best {
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
		o.resume(&other.Track, &other.appearance)
		t.releaseAppearance(&other.appearance)
		other.ID, other.State, other.confirmed = number, postprocess.Ended, false // goes without a word
	default:
		t.objects[found].resume(&t.ended[ended].Track, &t.ended[ended].appearance)
		t.dropEnded(ended)
	}
	slices.SortFunc(t.objects, func(a, b object) int { return cmp.Compare(a.ID, b.ID) })
	return true
}

// follows reports whether one that was there before can have come to where this one is. Who stood still goes no farther than its longer
// side in a second.
func (o *object) reachableFrom(before *postprocess.Track, remembered *appearance) bool {
	if o.Class != before.Class {
		return false
	}
	const slack, pace = 0.5, 1.0 // sides, sides a second
	a, b := &o.appearance.box, &remembered.box
	side := float64(max(a.Width(), a.Height(), b.Width(), b.Height()))
	way := math.Hypot(float64(a.X1+a.X2-b.X1-b.X2), float64(a.Y1+a.Y2-b.Y1-b.Y2)) / 2
	speed := pace*side + math.Hypot(float64(before.VX), float64(before.VY))
	return way <= slack*side+speed*o.appearance.at.Sub(remembered.at).Seconds()
}

// resume makes a new object the one that it was before, whose longer memory of looks stays.
func (o *object) resume(before *postprocess.Track, remembered *appearance) {
	o.ID, o.First, o.Hits, o.undecided = before.ID, before.First, before.Hits+o.Hits, false
	o.reidentified = true
	o.appearance, *remembered = *remembered, o.appearance
}

// cosine is that of the angle between two vectors of length 1.
func cosine(a, b []float32) float32 {
	sum := float32(0)
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
