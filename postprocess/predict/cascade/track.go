package cascade

import "time"

// track holds the latest predictions of an object.
type track struct {
	latest   [MaxVotes]prediction
	count    int // of all predictions
	inFlight bool
	due      time.Time
	waiting  time.Time // since when the next crop is due and cannot be taken, or counted as missed; zero if it is not
	reported int       // class reported last, -1 for none
	missing  int       // frames without the object

	// Of a text reader: the text of the last vote, its spelling, and how often it changed.
	lastText    text
	spelled     string
	textChanges int

	// Of an embedding network: the latest vector, and whether it has not been reported yet.
	vector  []float32
	updated bool
}

// add adds a prediction; the latest limit of them count.
func (v *track) add(l prediction, limit int) {
	v.vector = append(v.vector[:0], l.vector...)
	v.updated = true
	l.vector = nil
	v.latest[v.count%limit] = l
	v.count++
}

// winner returns the class with the highest sum of scores among the latest predictions, and its mean score over all of them; -1 for none.
func (v *track) winner(limit int) (class int, score float32, votes int) {
	votes = min(v.count, limit)
	class = -1
	best := float32(0)
	for i := range votes {
		sum := float32(0)
		for k := range votes {
			if v.latest[k].class == v.latest[i].class {
				sum += v.latest[k].score
			}
		}
		if sum > best {
			class, best = v.latest[i].class, sum
		}
	}
	return class, best / float32(max(votes, 1)), votes
}
