package evaluate

import (
	"cmp"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Agreement compares the detections of a candidate engine with those of a reference on the same images. Set the fields, then Add; one
// goroutine at a time may use it.
//
// Boxes of the same class are paired by descending overlap. Then the remaining boxes are paired regardless of class: those are class flips.
// An unpaired box with a score within Margin of Threshold is excused, because a small drift decides whether it was reported at all.
type Agreement struct {
	// IoU is the minimum overlap of a pair, 0 for 0.5.
	IoU float32
	// MaxDrift is the maximum difference of the scores of matching boxes, 0 for any.
	MaxDrift float32
	// Threshold and Margin describe the scores at which a box may be missing on one side; Margin 0 excuses none.
	Threshold, Margin float32

	report AgreementReport
	drift  float64
	iou    float64
	pairs  []pair
	used   [2][]bool
}

// AgreementReport is the sum over all images. Reference = Matched + Flipped + Drifted + Missing + excused ones, and likewise for Candidate
// with Extra.
type AgreementReport struct {
	Images    int     `json:"images"`
	Reference int     `json:"reference"` // boxes of the reference engine
	Candidate int     `json:"candidate"`
	Matched   int     `json:"matched"` // same position and class, score within MaxDrift
	Drifted   int     `json:"drifted"` // same position and class, other score
	Flipped   int     `json:"flipped"` // same position, other class
	Missing   int     `json:"missing"` // only the reference has it
	Extra     int     `json:"extra"`   // only the candidate has it
	Excused   int     `json:"excused"` // on one side only, but near the threshold
	MeanDrift float64 `json:"mean_drift"`
	MaxDrift  float64 `json:"max_drift"` // largest score difference at the same position with the same class
	MeanIoU   float64 `json:"mean_iou"`
	MinIoU    float64 `json:"min_iou"`
	MatchRate float64 `json:"match_rate"` // 2 Matched / (Reference + Candidate - Excused), 1 if both are empty
}

type pair struct {
	iou                  float32
	reference, candidate int
}

// Add compares the detections of one image.
func (a *Agreement) Add(reference, candidate []postprocess.Detection) {
	r := &a.report
	if r.Images == 0 {
		r.MinIoU = 1
	}
	r.Images++
	r.Reference += len(reference)
	r.Candidate += len(candidate)
	a.used[0] = append(a.used[0][:0], make([]bool, len(reference))...)
	a.used[1] = append(a.used[1][:0], make([]bool, len(candidate))...)
	a.match(reference, candidate, func(x, y *postprocess.Detection, iou float32) {
		drift := math.Abs(float64(x.Score) - float64(y.Score))
		a.drift += drift
		a.iou += float64(iou)
		r.MaxDrift = max(r.MaxDrift, drift)
		r.MinIoU = min(r.MinIoU, float64(iou))
		if a.MaxDrift > 0 && drift > float64(a.MaxDrift) {
			r.Drifted++
		} else {
			r.Matched++
		}
	}, func(x, y *postprocess.Detection) bool { return x.Class == y.Class })
	a.match(reference, candidate, func(*postprocess.Detection, *postprocess.Detection, float32) { r.Flipped++ },
		func(*postprocess.Detection, *postprocess.Detection) bool { return true })
	r.Missing += a.unpaired(reference, a.used[0])
	r.Extra += a.unpaired(candidate, a.used[1])
}

// match pairs the remaining boxes of both sides, largest overlap first.
func (a *Agreement) match(reference, candidate []postprocess.Detection, found func(x, y *postprocess.Detection, iou float32),
	may func(x, y *postprocess.Detection) bool,
) {
	limit := a.IoU
	if limit == 0 {
		limit = 0.5
	}
	a.pairs = a.pairs[:0]
	for i := range reference {
		for j := range candidate {
			if a.used[0][i] || a.used[1][j] || !may(&reference[i], &candidate[j]) {
				continue
			}
			if iou := reference[i].IoU(candidate[j].Box); iou >= limit {
				a.pairs = append(a.pairs, pair{iou, i, j})
			}
		}
	}
	slices.SortStableFunc(a.pairs, func(x, y pair) int { return cmp.Compare(y.iou, x.iou) })
	for _, p := range a.pairs {
		if !a.used[0][p.reference] && !a.used[1][p.candidate] {
			a.used[0][p.reference], a.used[1][p.candidate] = true, true
			found(&reference[p.reference], &candidate[p.candidate], p.iou)
		}
	}
}

// unpaired counts the boxes without a partner that are not excused.
func (a *Agreement) unpaired(detections []postprocess.Detection, used []bool) int {
	count := 0
	for i := range detections {
		switch {
		case used[i]:
		case detections[i].Score < a.Threshold+a.Margin:
			a.report.Excused++
		default:
			count++
		}
	}
	return count
}

// Report returns the agreement over all images.
func (a *Agreement) Report() AgreementReport {
	r := a.report
	if same := r.Matched + r.Drifted; same > 0 {
		r.MeanDrift, r.MeanIoU = a.drift/float64(same), a.iou/float64(same)
	}
	r.MatchRate = 1
	if total := r.Reference + r.Candidate - r.Excused; total > 0 {
		r.MatchRate = 2 * float64(r.Matched) / float64(total)
	}
	return r
}
