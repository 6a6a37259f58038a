package cascade

import "time"

// track are the latest looks at an object, and when the next one is due.
type track struct {
	latest   [MaxVotes]prediction
	count    int // since the object is known
	inFlight bool
	due      time.Time
	reported int // class that was told last, -1 for none
	missing  int // frames without the object

	// Of a network that reads: what the looks came to last, how it is spelt, and how often it was another text.
	lastText    text
	spelled     string
	textChanges int

	// Of a network that embeds: the vector of the latest look, and whether nobody was told of it yet.
	vector  []float32
	updated bool
}

// add takes a look into account; the latest of them count.
func (v *track) add(l prediction, limit int) {
	v.vector, v.updated = append(v.vector[:0], l.vector...), true
	l.vector = nil
	v.latest[v.count%limit] = l
	v.count++
}

// winner is the class with the highest sum of scores among the latest looks, and its mean score over all of them; -1 before the first.
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
