package evaluate

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// MapAgreement compares the segmentation or depth maps of two networks on the same images, pixel by pixel. The second one is the reference.
// Classes is the number of classes of segmentation maps; depths are in the networks' unit.
type MapAgreement struct {
	Classes int

	images          int
	all             Segmentation
	sameMin         float64 // lowest share of equal pixels in an image
	pixels, missing int64   // depth pixels of the reference, and those that the candidate lacks
	near            int64
	error, size     float64 // sums over the pixels that both have
	maxError        float64
}

// Add compares the maps of an image of the given size; nil if a network returned none. Images without a reference do not count.
func (a *MapAgreement) Add(candidate, reference *postprocess.DenseMap, width, height int) {
	if reference == nil {
		return
	}
	a.images++
	if reference.Depths != nil {
		a.depths(candidate, reference, width, height)
		return
	}
	labels := &LabelMap{Width: width, Height: height, Numbers: make([]float32, 0, width*height)}
	for y := range height {
		for x := range width {
			column, row := reference.CellAt(x, y)
			labels.Numbers = append(labels.Numbers, float32(reference.Classes[row*reference.Width+column]))
		}
	}
	one := Segmentation{Classes: a.Classes}
	one.Add(candidate, width, height, labels)
	if share := one.Result().Accuracy; a.images == 1 || share < a.sameMin {
		a.sameMin = share
	}
	if a.all.confusion == nil {
		a.all = one
		return
	}
	for i, count := range one.confusion {
		a.all.confusion[i] += count
	}
}

func (a *MapAgreement) depths(candidate, reference *postprocess.DenseMap, width, height int) {
	for y := range height {
		for x := range width {
			want, got := float64(reference.DepthAt(float32(x), float32(y))), math.NaN()
			if candidate != nil {
				got = float64(candidate.DepthAt(float32(x), float32(y)))
			}
			if want-want != 0 {
				continue
			}
			a.pixels++
			if got-got != 0 {
				a.missing++
				continue
			}
			off := math.Abs(got - want)
			a.error, a.size, a.maxError = a.error+off, a.size+math.Abs(want), max(a.maxError, off)
			if got == want || got > 0 && want > 0 && max(got/want, want/got) < 1.25 {
				a.near++
			}
		}
	}
}

// MapAgreementResult is the agreement of two networks. For segmentation maps, Same is the share of the reference's pixels with the same
// class, SameMin that of the worst image, and MeanIoU that of Segmentation with the reference as labels. For depth maps, MeanError and
// MaxError are absolute in the networks' unit, Relative is the mean error over the reference's mean absolute depth, Delta125 the share of
// the reference's pixels within a factor of 1.25, and Missing the share for which the candidate has no finite depth.
type MapAgreementResult struct {
	Images  int     `json:"images"` // images with a reference
	Same    float64 `json:"same,omitempty"`
	SameMin float64 `json:"same_least,omitempty"`
	MeanIoU float64 `json:"miou,omitempty"`

	MeanError float64 `json:"mean_error"`
	MaxError  float64 `json:"max_error"`
	Relative  float64 `json:"relative_error"`
	Delta125  float64 `json:"delta_1_25,omitempty"`
	Missing   float64 `json:"missing,omitempty"`
}

// Result returns the agreement over all images.
func (a *MapAgreement) Result() MapAgreementResult {
	places := a.all.Result()
	r := MapAgreementResult{Images: a.images, Same: places.Accuracy, SameMin: a.sameMin, MeanIoU: places.MeanIoU, MaxError: a.maxError}
	if a.pixels > 0 {
		r.Delta125, r.Missing = float64(a.near)/float64(a.pixels), float64(a.missing)/float64(a.pixels)
	}
	if both := a.pixels - a.missing; both > 0 {
		r.MeanError = a.error / float64(both)
	}
	if a.size > 0 {
		r.Relative = a.error / a.size
	}
	return r
}
