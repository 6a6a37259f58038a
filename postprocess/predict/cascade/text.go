package cascade

import "github.com/edge-infer/edge-infer/postprocess"

// MaxCharacters is the maximum length of a text; the rest of a longer one is dropped.
const MaxCharacters = 32

// text is the text of one crop: the class numbers of its characters, then zeros, so that equal texts are equal values.
type text struct {
	characters [MaxCharacters]int32
	count      int8
}

// textOf joins the characters of a crop, and returns the mean of their scores.
func textOf(found []postprocess.Detection) (t text, score float32) {
	found = found[:min(len(found), MaxCharacters)]
	for i := range found {
		t.characters[i] = int32(found[i].Class)
		score += found[i].Score
	}
	t.count = int8(len(found))
	return t, score / float32(len(found))
}

// textVote combines the latest texts by position: the length with the highest sum of scores, and for each character the one with the
// highest sum among texts of that length. The score is the mean over the characters of their share of all predictions.
func (v *track) textVote(limit int) (t text, score float32, votes int) {
	votes = min(v.count, limit)
	if votes == 0 {
		return t, 0, 0
	}
	all := v.latest[:votes]
	best := float32(0)
	for i := range all {
		sum := float32(0)
		for k := range all {
			if all[k].text.count == all[i].text.count {
				sum += all[k].score
			}
		}
		if sum > best {
			best, t.count = sum, all[i].text.count
		}
	}
	for at := range t.count {
		best = 0
		for i := range all {
			if all[i].text.count != t.count {
				continue
			}
			sum := float32(0)
			for k := range all {
				if all[k].text.count == t.count && all[k].text.characters[at] == all[i].text.characters[at] {
					sum += all[k].score
				}
			}
			if sum > best {
				best, t.characters[at] = sum, all[i].text.characters[at]
			}
		}
		score += best
	}
	return t, score / float32(max(int(t.count), 1)*votes), votes
}
