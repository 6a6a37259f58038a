package track

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Defaults of Tracker's fields. DefaultAppearanceThreshold lies between OSNet's cosine similarities of two images of the same person and of
// different persons.
const (
	DefaultMaxLostAge          = 30 * time.Second
	DefaultAppearanceThreshold = 0.7
)

// maxEnded bounds the ended tracks kept for re-identification; the oldest is dropped.
const maxEnded = 64

// tentativeTimeout is how long a new track waits for its first embedding before it counts as new.
const tentativeTimeout = 500 * time.Millisecond

// embeddingWindow is the time constant of the moving average of embeddings in seconds. mismatchTimeout is how long embeddings may differ
// from a track's appearance before the track becomes another object. newTrackAge is the age up to which a new track can still be
// re-identified as an earlier one.
const (
	embeddingWindow = 5.0
	mismatchTimeout = 300 * time.Millisecond
	newTrackAge     = time.Second
)

// minEmbeddingWeight is the weight of an embedding at NewTrackThreshold; it rises with the score.
const minEmbeddingWeight = 0.05

// appearance is the moving average of an object's embeddings, of length 1, weighted by score and age.
type appearance struct {
	mean   []float32
	weight float64         // sum of the embeddings' weights
	at     time.Time       // time of the last embedding
	box    postprocess.Box // box of the last embedding
}

func (l *appearance) valid() bool { return l.weight > 0 }

// endedTrack is an ended track that can be re-identified, as of its last detection.
type endedTrack struct {
	postprocess.Track
	appearance appearance
}

// UpdateEmbedding adds a unit-length embedding to a track of the last result; embeddings of the same object must be similar. Call it
// between two Updates. Embeddings may arrive late and for any subset of frames. Those of boxes below NewTrackThreshold are ignored, because
// they also show the occluding object.
//
// Embeddings have two effects. A new track that could continue one that is lost, or ended up to MaxLostAge ago, is Tentative until its
// first embedding, for half a second at most. If it is similar to such a track in its first second, and could have come that far, it
// continues its ID, First and Hits. And a track whose embeddings have not matched its appearance for a while is another object that motion
// confused with it: it gets a new ID, or that of the track that it resembles, and the previous object may be re-identified later.
// Embeddings that do not match are not averaged.
func (t *Tracker) UpdateEmbedding(track uint64, vector []float32) {
	i, known := slices.BinarySearchFunc(t.objects, track, func(o object, id uint64) int { return cmp.Compare(o.ID, id) })
	if !known || len(vector) == 0 || t.objects[i].Score < t.NewTrackThreshold {
		return
	}
	if len(vector) != t.embeddingSize { // from another network
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

// isNew reports whether an object may still continue an earlier track.
func (t *Tracker) isNew(o *object) bool { return !o.reidentified && t.at.Sub(o.First) < newTrackAge }

// updateAppearance adds an embedding to a moving average. Its weight depends on the score and, after many embeddings, on the time since the
// previous one: the rate of embeddings does not matter.
func (t *Tracker) updateAppearance(l *appearance, o *object, vector []float32) {
	least := t.NewTrackThreshold
	weight := float64((o.Score - least + minEmbeddingWeight) / (1 - least + minEmbeddingWeight))
	share := float32(1)
	if l.valid() {
		passed := min(t.at.Sub(l.at).Seconds(), 1) // longer gaps count as 1 s
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

// splitIdentity gives an object a new ID with its mismatching embeddings; the previous identity has ended.
func (t *Tracker) splitIdentity(i int) {
	o := t.objects[i]
	before := o.Track
	before.Last = o.appearance.at
	t.addEnded(&before, &o.appearance)
	t.next++
	o.ID = t.next
	o.First = t.at
	o.Hits = 1
	o.undecided = true
	o.reidentified = false
	o.appearance, o.mismatch = o.mismatch, appearance{}
	t.objects = append(slices.Delete(t.objects, i, i+1), o) // the highest ID is last
}

// newMean returns memory for a moving average, all 0.
func (t *Tracker) newMean() []float32 {
	if len(t.freeMeans) == 0 {
		return make([]float32, t.embeddingSize)
	}
	mean := t.freeMeans[len(t.freeMeans)-1]
	t.freeMeans = t.freeMeans[:len(t.freeMeans)-1]
	clear(mean)
	return mean
}

// releaseAppearance returns the memory of an appearance.
func (t *Tracker) releaseAppearance(l *appearance) {
	if l.valid() {
		t.freeMeans = append(t.freeMeans, l.mean)
	}
	*l = appearance{}
}

// resetAppearance removes all embeddings.
func (t *Tracker) resetAppearance() {
	for i := range t.objects {
		t.objects[i].appearance, t.objects[i].mismatch = appearance{}, appearance{}
	}
	t.ended, t.freeMeans, t.embeddingSize = nil, nil, 0
}

// addEnded keeps an ended track for re-identification and takes its appearance.
func (t *Tracker) addEnded(track *postprocess.Track, l *appearance) {
	if len(t.ended) == maxEnded {
		t.dropEnded(0)
	}
	t.ended = append(t.ended, endedTrack{*track, *l})
	*l = appearance{}
}

// dropEnded drops an ended track.
func (t *Tracker) dropEnded(i int) {
	t.releaseAppearance(&t.ended[i].appearance)
	t.ended = slices.Delete(t.ended, i, i+1)
}

// canReidentify reports whether a new object could continue an earlier track.
func (t *Tracker) canReidentify() bool {
	lost := func(o object) bool { return o.State == postprocess.Lost && o.appearance.valid() }
	return len(t.ended) > 0 || slices.ContainsFunc(t.objects, lost)
}

// reidentify continues earlier tracks with new objects, the most similar pair first.
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
		o := &t.objects[i]
		decided := o.appearance.valid() || t.at.Sub(o.First) >= tentativeTimeout
		if o.undecided && o.State == postprocess.Active && decided {
			o.undecided = false
		}
	}
}

// reidentifyOne continues one earlier track with the most similar new object.
func (t *Tracker) reidentifyOne() bool {
	best, found := t.AppearanceThreshold, -1
	lost, ended := -1, -1
	for i := range t.objects {
		o := &t.objects[i]
		if o.State != postprocess.Active || !o.appearance.valid() || !(o.undecided || t.isNew(o)) {
			continue
		}
		for j := range t.objects {
			other := &t.objects[j]
			if other.State != postprocess.Lost {
				continue
			}
			if similarity := o.similarityTo(&other.Track, &other.appearance); similarity >= best {
				best, found = similarity, i
				lost, ended = j, -1
			}
		}
		for j := range t.ended {
			other := &t.ended[j]
			if similarity := o.similarityTo(&other.Track, &other.appearance); similarity >= best {
				best, found = similarity, i
				lost, ended = -1, j
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
		other.ID, other.State, other.confirmed = number, postprocess.Ended, false // ends without being reported
	default:
		t.objects[found].resume(&t.ended[ended].Track, &t.ended[ended].appearance)
		t.dropEnded(ended)
	}
	slices.SortFunc(t.objects, func(a, b object) int { return cmp.Compare(a.ID, b.ID) })
	return true
}

// similarityTo returns the cosine similarity to an earlier track, -1 if the object cannot continue it.
func (o *object) similarityTo(before *postprocess.Track, remembered *appearance) float32 {
	if !remembered.valid() || !o.reachableFrom(before, remembered) {
		return -1
	}
	return cosine(o.appearance.mean, remembered.mean)
}

// reachableFrom reports whether the object can have come from the position of an earlier track. At rest it moves at most its longer side
// per second.
func (o *object) reachableFrom(before *postprocess.Track, remembered *appearance) bool {
	if o.Class != before.Class {
		return false
	}
	const slack, pace = 0.5, 1.0 // box sides, box sides per second
	a, b := &o.appearance.box, &remembered.box
	side := float64(max(a.Width(), a.Height(), b.Width(), b.Height()))
	way := math.Hypot(float64(a.X1+a.X2-b.X1-b.X2), float64(a.Y1+a.Y2-b.Y1-b.Y2)) / 2
	speed := pace*side + math.Hypot(float64(before.VX), float64(before.VY))
	return way <= slack*side+speed*o.appearance.at.Sub(remembered.at).Seconds()
}

// resume continues an earlier track with the new object and keeps the earlier, longer average of embeddings.
func (o *object) resume(before *postprocess.Track, remembered *appearance) {
	o.ID = before.ID
	o.First = before.First
	o.Hits = before.Hits + o.Hits
	o.undecided = false
	o.reidentified = true
	o.appearance, *remembered = *remembered, o.appearance
}

// cosine returns the cosine similarity of two vectors of length 1.
func cosine(a, b []float32) float32 {
	sum := float32(0)
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
