// Package fuse makes one list of detections of those that several networks, or several looks of one, have of an image.
package fuse

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Method is how detections become objects.
type Method string

// The methods.
const (
	// WeightedBoxes is weighted box fusion: an object's box is the mean of all that were found of it, weighted by their scores, and its score falls
	// with every look that did not see it. Solovyev, Wang, Gabruseva: "Weighted boxes fusion: Ensembling boxes from different object
	// detection models", Image and Vision Computing 107, 2021 (arXiv 1910.13302).
	WeightedBoxes Method = "wbf"
	// MajorityVote keeps an object that looks of more than half of the weight have seen; its box is as of Boxes, its score the mean of those looks.
	MajorityVote Method = "vote"
	// NMS keeps the best of the detections that overlap, as non-maximum suppression over all looks does.
	NMS Method = "nms"
)

// Methods are all of them.
func Methods() []Method { return []Method{WeightedBoxes, MajorityVote, NMS} }

// DefaultIoU is the overlap over which two detections of a class are one object.
const DefaultIoU = 0.55

// Fuser fuses detections. The exported fields are set before Open. It keeps its memory from image to image; one goroutine at a time.
type Fuser struct {
	// Method is Boxes when empty.
	Method Method
	// IoU is DefaultIoU when 0.
	IoU float32
	// MinScore is the score under which a detection is not looked at.
	MinScore float32
	// Weights are those of the looks, one for each, over 0; nil for equal ones.
	Weights []float32
	// UseMaxScore takes the highest score of an object's detections for its score, instead of the mean that counts absent looks as 0.
	UseMaxScore bool

	weights []float64 // set by Open
	sum     float64
	highest float64

	seen    []sighting
	objects []object
	mask    []float64
}

// sighting is a detection of one look.
type sighting struct {
	detection *postprocess.Detection
	look      int
	score     float64 // times the look's weight
	next      int32   // of the same object, -1 for none
}

// object is what detections have been put together to.
type object struct {
	class       int
	box         [4]float64
	sum         float64 // of the scores
	weighted    [4]float64
	best        float64
	first, last int32
	count       int
}

// Open checks the settings for so many looks.
func (f *Fuser) Open(looks int) error {
	f.Method, f.IoU = cmp.Or(f.Method, WeightedBoxes), cmp.Or(f.IoU, DefaultIoU)
	switch {
	case !slices.Contains(Methods(), f.Method):
		return fmt.Errorf("fusion %q must be one of %v", f.Method, Methods())
	case !(f.IoU > 0 && f.IoU < 1):
		return fmt.Errorf("fusion at an overlap of %v, must be between 0 and 1", f.IoU)
	case len(f.Weights) != 0 && len(f.Weights) != looks:
		return fmt.Errorf("%d weights for %d that look", len(f.Weights), looks)
	}
	f.weights, f.sum, f.highest = make([]float64, looks), 0, 0
	for i := range f.weights {
		f.weights[i] = 1
		if len(f.Weights) > 0 {
			f.weights[i] = float64(f.Weights[i])
		}
		if !(f.weights[i] > 0 && f.weights[i] <= 1e6) {
			return fmt.Errorf("weight %v, must be over 0", f.weights[i])
		}
		f.sum += f.weights[i]
		f.highest = max(f.highest, f.weights[i])
	}
	return nil
}

// Fuse appends the objects that the looks have seen to dst, best first. Detections with details get details of their own; boxes alone cost
// no allocation once there is room.
func (f *Fuser) Fuse(dst []postprocess.Detection, looks [][]postprocess.Detection) []postprocess.Detection {
	f.seen, f.objects = f.seen[:0], f.objects[:0]
	for look, detections := range looks {
		for i := range detections {
			found := &detections[i]
			if found.Score < f.MinScore || !(found.Width() > 0 && found.Height() > 0) {
				continue
			}
			f.seen = append(f.seen, sighting{detection: found, look: look, score: float64(found.Score) * f.weights[look], next: -1})
		}
	}
	slices.SortStableFunc(f.seen, func(a, b sighting) int { return cmp.Compare(b.score, a.score) })
	for i := range f.seen {
		f.join(int32(i))
	}
	first := len(dst)
	for i := range f.objects {
		if score, stands := f.score(&f.objects[i]); stands {
			dst = append(dst, f.detection(&f.objects[i], score))
		}
	}
	slices.SortStableFunc(dst[first:], func(a, b postprocess.Detection) int { return cmp.Compare(b.Score, a.Score) })
	return dst
}

// join puts a sighting to the object that it overlaps most, or makes one of it.
func (f *Fuser) join(number int32) {
	s := &f.seen[number]
	b := s.detection.Box
	box := [4]float64{float64(b.X1), float64(b.Y1), float64(b.X2), float64(b.Y2)}
	best, overlap := -1, float64(f.IoU)
	for i := range f.objects {
		if o := &f.objects[i]; o.class == s.detection.Class {
			if iou := iou(&o.box, &box); iou > overlap {
				best, overlap = i, iou
			}
		}
	}
	if best < 0 {
		o := object{class: s.detection.Class, box: box, sum: s.score, best: s.score, first: number, last: number, count: 1}
		for k := range box {
			o.weighted[k] = s.score * box[k]
		}
		f.objects = append(f.objects, o)
		return
	}
	o := &f.objects[best]
	f.seen[o.last].next, o.last = number, number
	o.count++
	o.sum += s.score
	for k := range box {
		o.weighted[k] += s.score * box[k]
		if f.Method != NMS && o.sum > 0 {
			o.box[k] = o.weighted[k] / o.sum
		}
	}
}

func iou(a, b *[4]float64) float64 {
	width, height := min(a[2], b[2])-max(a[0], b[0]), min(a[3], b[3])-max(a[1], b[1])
	if width <= 0 || height <= 0 {
		return 0
	}
	shared := width * height
	return shared / ((a[2]-a[0])*(a[3]-a[1]) + (b[2]-b[0])*(b[3]-b[1]) - shared)
}

// score is an object's, and whether it is one.
func (f *Fuser) score(o *object) (score float64, stands bool) {
	switch {
	case f.Method == NMS || f.UseMaxScore && f.Method == WeightedBoxes:
		return o.best / f.highest, true
	case f.Method == WeightedBoxes:
		return o.sum / float64(o.count) * float64(min(len(f.weights), o.count)) / f.sum, true
	}
	weight := 0.0
	for i := o.first; i >= 0; i = f.seen[i].next {
		if !f.before(o, i) {
			weight += f.weights[f.seen[i].look]
		}
	}
	all := 0.0
	for i := o.first; i >= 0; i = f.seen[i].next {
		all += f.weights[f.seen[i].look]
	}
	return o.sum / all, 2*weight > f.sum
}

// before reports whether a look has an earlier sighting of the object.
func (f *Fuser) before(o *object, number int32) bool {
	for i := o.first; i != number; i = f.seen[i].next {
		if f.seen[i].look == f.seen[number].look {
			return true
		}
	}
	return false
}

// finding is what comes out of an object.
func (f *Fuser) detection(o *object, score float64) postprocess.Detection {
	best := f.seen[o.first].detection
	found := postprocess.Detection{
		Box: postprocess.Box{
			X1: float32(o.box[0]), Y1: float32(o.box[1]), X2: float32(o.box[2]), Y2: float32(o.box[3]),
		},
		Score: float32(min(score, 1)), Class: o.class,
	}
	if best.Detail == nil {
		return found
	}
	whole := best.Clone()
	found.Detail = whole.Detail
	if f.Method == NMS || o.count == 1 {
		return found
	}
	f.fuseDetail(o, &found)
	return found
}
