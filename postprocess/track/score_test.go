package track_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/internal/assignment"
)

// identified is a box with its identity in the ground truth or in the tracker.
type identified struct {
	postprocess.Box
	ID int64
}

// trackingScorer measures a tracker on a sequence: MOTA (Bernardin and Stiefelhagen, 2008), IDF1 (Ristani et al., 2016) and HOTA (Luiten et
// al., 2021), all with IoU as similarity; MOTA and IDF1 at 0.5, HOTA over 0.05 to 0.95. Classes are ignored. The zero value is ready; add
// the frames in order, from one goroutine.
type trackingScorer struct {
	truths, tracks identities
	frames         []trackedFrame
}

// identities numbers ids from 0 in the order of their appearance.
type identities struct {
	numbers map[int64]int
	seen    []int // frames, by number
}

func (i *identities) number(id int64) int {
	if n, ok := i.numbers[id]; ok {
		i.seen[n]++
		return n
	}
	if i.numbers == nil {
		i.numbers = make(map[int64]int)
	}
	n := len(i.numbers)
	i.numbers[id] = n
	i.seen = append(i.seen, 1)
	return n
}

// trackedFrame holds the similarities of all objects and tracks of a frame.
type trackedFrame struct {
	truths, tracks []int
	similarity     []float64
}

// trackingScores holds the scores; 1 is perfect, and MOTA can be negative.
type trackingScores struct {
	Frames       int     `json:"frames"`
	Truths       int     `json:"truths"` // boxes
	Tracks       int     `json:"tracks"` // boxes
	MOTA         float64 `json:"mota"`
	IDF1         float64 `json:"idf1"`
	HOTA         float64 `json:"hota"`
	DetA         float64 `json:"deta"`
	AssA         float64 `json:"assa"`
	IDSwitches   int     `json:"id_switches"`
	Missed       int     `json:"missed"`
	FalseAlarms  int     `json:"false_alarms"`
	Identities   int     `json:"identities"` // of the ground truth
	TrackerCount int     `json:"tracker_identities"`
}

// add adds one frame. An id may appear once in each list.
func (t *trackingScorer) add(truths, tracks []identified) {
	frame := trackedFrame{similarity: make([]float64, len(truths)*len(tracks))}
	for i := range truths {
		frame.truths = append(frame.truths, t.truths.number(truths[i].ID))
		for j := range tracks {
			frame.similarity[i*len(tracks)+j] = float64(truths[i].IoU(tracks[j].Box))
		}
	}
	for j := range tracks {
		frame.tracks = append(frame.tracks, t.tracks.number(tracks[j].ID))
	}
	t.frames = append(t.frames, frame)
}

const (
	sameObject = 0.5 // the IoU of MOTA and IDF1
	hotaSteps  = 19  // IoU 0.05 to 0.95
)

// result returns the scores over all frames.
func (t *trackingScorer) result() trackingScores {
	r := trackingScores{Frames: len(t.frames), Identities: len(t.truths.seen), TrackerCount: len(t.tracks.seen)}
	for i := range t.frames {
		r.Truths += len(t.frames[i].truths)
		r.Tracks += len(t.frames[i].tracks)
	}
	t.clear(&r)
	t.identity(&r)
	t.higherOrder(&r)
	return r
}

// clear counts misses, false alarms and identity switches by frame. A pair is kept from the previous frame while it overlaps.
func (t *trackingScorer) clear(r *trackingScores) {
	var solver assignment.Solver
	last := make([]int, len(t.truths.seen))    // last track of each object
	current := make([]int, len(t.truths.seen)) // track in the previous frame, plus 1
	for i := range last {
		last[i] = -1
	}
	var weights []float64
	next := make([]int, len(current))
	for f := range t.frames {
		frame := &t.frames[f]
		weights = append(weights[:0], frame.similarity...)
		for i, truth := range frame.truths {
			for j, track := range frame.tracks {
				w := &weights[i*len(frame.tracks)+j]
				if *w < sameObject {
					*w = 0
				} else if current[truth] == track+1 {
					*w += 1000
				}
			}
		}
		clear(next)
		matched := 0
		for i, j := range solver.Maximize(weights, len(frame.truths), len(frame.tracks)) {
			if j < 0 {
				continue
			}
			matched++
			truth, track := frame.truths[i], frame.tracks[j]
			if last[truth] >= 0 && last[truth] != track {
				r.IDSwitches++
			}
			last[truth], next[truth] = track, track+1
		}
		current, next = next, current
		r.Missed += len(frame.truths) - matched
		r.FalseAlarms += len(frame.tracks) - matched
	}
	if r.Truths > 0 {
		r.MOTA = 1 - float64(r.Missed+r.FalseAlarms+r.IDSwitches)/float64(r.Truths)
	}
}

// identity pairs whole trajectories to maximize the number of shared frames.
func (t *trackingScorer) identity(r *trackingScores) {
	shared := make([]float64, len(t.truths.seen)*len(t.tracks.seen))
	for f := range t.frames {
		frame := &t.frames[f]
		for i, truth := range frame.truths {
			for j, track := range frame.tracks {
				if frame.similarity[i*len(frame.tracks)+j] >= sameObject {
					shared[truth*len(t.tracks.seen)+track]++
				}
			}
		}
	}
	var solver assignment.Solver
	hits := 0.0
	for truth, track := range solver.Maximize(shared, len(t.truths.seen), len(t.tracks.seen)) {
		if track >= 0 {
			hits += shared[truth*len(t.tracks.seen)+int(track)]
		}
	}
	if r.Truths+r.Tracks > 0 {
		r.IDF1 = 2 * hits / float64(r.Truths+r.Tracks)
	}
}

// higherOrder computes HOTA: pairs are made frame by frame, preferring identities that coincide over the whole sequence.
func (t *trackingScorer) higherOrder(r *trackingScores) {
	tracks := len(t.tracks.seen)
	together := make([]float64, len(t.truths.seen)*tracks)
	for f := range t.frames {
		frame := &t.frames[f]
		columns := len(frame.tracks)
		ofTruth, ofTrack := make([]float64, len(frame.truths)), make([]float64, columns)
		for i := range frame.truths {
			for j := range frame.tracks {
				ofTruth[i] += frame.similarity[i*columns+j]
				ofTrack[j] += frame.similarity[i*columns+j]
			}
		}
		for i, truth := range frame.truths {
			for j, track := range frame.tracks {
				s := frame.similarity[i*columns+j]
				if whole := ofTruth[i] + ofTrack[j] - s; s > 0 && whole > 0 {
					together[truth*tracks+track] += s / whole
				}
			}
		}
	}
	// Jaccard index: shared frames over frames of either.
	alignment := func(truth, track int) float64 {
		both := together[truth*tracks+track]
		return both / (float64(t.truths.seen[truth]) + float64(t.tracks.seen[track]) - both)
	}
	type paired struct {
		truth, track int
		similarity   float64
	}
	var solver assignment.Solver
	var pairs []paired
	var weights []float64
	for f := range t.frames {
		frame := &t.frames[f]
		columns := len(frame.tracks)
		weights = append(weights[:0], frame.similarity...)
		for i, truth := range frame.truths {
			for j, track := range frame.tracks {
				weights[i*columns+j] *= alignment(truth, track)
			}
		}
		for i, j := range solver.Maximize(weights, len(frame.truths), columns) {
			if j >= 0 {
				pairs = append(pairs, paired{frame.truths[i], frame.tracks[j], frame.similarity[i*columns+int(j)]})
			}
		}
	}
	matches := make([]float64, len(together))
	for step := 1; step <= hotaSteps; step++ {
		const epsilon = 2.220446049250313e-16
		alpha := 0.05*float64(step) - epsilon
		clear(matches)
		hits := 0.0
		for _, p := range pairs {
			if p.similarity >= alpha {
				matches[p.truth*tracks+p.track]++
				hits++
			}
		}
		association := 0.0
		for at, n := range matches {
			if n > 0 {
				association += n * n / (float64(t.truths.seen[at/tracks]) + float64(t.tracks.seen[at%tracks]) - n)
			}
		}
		assA := association / max(1, hits)
		detA := hits / max(1, float64(r.Truths+r.Tracks)-hits)
		r.AssA += assA / hotaSteps
		r.DetA += detA / hotaSteps
		r.HOTA += math.Sqrt(assA*detA) / hotaSteps
	}
}

func TestScoresEqualTrackEval(t *testing.T) {
	var golden struct {
		Result trackingScores
		Frames []struct{ Truths, Tracks [][]float64 }
	}
	text, err := os.ReadFile("testdata/scores.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &golden))
	var tracking trackingScorer
	boxes := func(rows [][]float64) (out []identified) {
		for _, v := range rows {
			box := postprocess.Box{X1: float32(v[0]), Y1: float32(v[1]), X2: float32(v[2]), Y2: float32(v[3])}
			out = append(out, identified{box, int64(v[4])})
		}
		return out
	}
	for _, frame := range golden.Frames {
		tracking.add(boxes(frame.Truths), boxes(frame.Tracks))
	}
	got, want := tracking.result(), golden.Result
	assert.InDelta(t, want.MOTA, got.MOTA, 1e-9)
	assert.InDelta(t, want.IDF1, got.IDF1, 1e-9)
	assert.InDelta(t, want.HOTA, got.HOTA, 1e-9)
	assert.InDelta(t, want.DetA, got.DetA, 1e-9)
	assert.InDelta(t, want.AssA, got.AssA, 1e-9)
	assert.Equal(t, want.IDSwitches, got.IDSwitches)
	assert.Equal(t, want.Missed, got.Missed)
	assert.Equal(t, want.FalseAlarms, got.FalseAlarms)
}
