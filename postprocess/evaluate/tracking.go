package evaluate

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/internal/assignment"
)

// Identified is a box with its identity in the ground truth or in the tracker.
type Identified struct {
	postprocess.Box
	ID int64
}

// Tracking measures a tracker on a sequence: MOTA (Bernardin and Stiefelhagen, 2008), IDF1 (Ristani et al., 2016) and HOTA (Luiten et al.,
// 2021), all with IoU as similarity; MOTA and IDF1 at 0.5, HOTA over 0.05 to 0.95. Classes are ignored. The zero value is ready; Add the
// frames in order, from one goroutine.
type Tracking struct {
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

// TrackingResult holds the scores; 1 is perfect, and MOTA can be negative.
type TrackingResult struct {
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

// Add adds one frame. An id may appear once in each list.
func (t *Tracking) Add(truths, tracks []Identified) {
	frame := trackedFrame{similarity: make([]float64, len(truths)*len(tracks))}
	for i := range truths {
		frame.truths = append(frame.truths, t.truths.number(truths[i].ID))
		as := Truth{Box: truths[i].Box}
		for j := range tracks {
			frame.similarity[i*len(tracks)+j] = overlapOf(tracks[j].Box, &as)
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

// Result returns the scores over all frames.
func (t *Tracking) Result() TrackingResult {
	r := TrackingResult{Frames: len(t.frames), Identities: len(t.truths.seen), TrackerCount: len(t.tracks.seen)}
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
func (t *Tracking) clear(r *TrackingResult) {
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
func (t *Tracking) identity(r *TrackingResult) {
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
func (t *Tracking) higherOrder(r *TrackingResult) {
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
