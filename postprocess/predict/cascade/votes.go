package cascade

import "time"

// votes are the latest looks at an object, and when the next one is due.
type votes struct {
	looks   [MaxVotes]look
	count   int // since the object is known
	shown   bool
	due     time.Time
	said    int // class that was told last, -1 for none
	missing int // frames without the object

	// Of a network that reads: what the looks came to last, how it is spelt, and how often it was another text.
	read     text
	spelt    string
	readings int

	// Of a network that embeds: the vector of the latest look, and whether nobody was told of it yet.
	vector []float32
	news   bool
}

// add takes a look into account; the latest of them count.
func (v *votes) add(l look, latest int) {
	v.vector, v.news = append(v.vector[:0], l.vector...), true
	l.vector = nil
	v.looks[v.count%latest] = l
	v.count++
}

// winner is the class with the highest sum of scores among the latest looks, and its mean score over all of them; -1 before the first.
func (v *votes) winner(latest int) (class int, score float32, looks int) {
	looks = min(v.count, latest)
	class = -1
	best := float32(0)
	for i := range looks {
		sum := float32(0)
		for k := range looks {
			if v.looks[k].class == v.looks[i].class {
				sum += v.looks[k].score
			}
		}
		if sum > best {
			class, best = v.looks[i].class, sum
		}
	}
	return class, best / float32(max(looks, 1)), looks
}
