package ensemble

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Method is how overlapping detections are fused to one object.
type Method string

// The methods of fusion. A view is a network of an ensemble, or an augmentation of the image.
const (
	// WeightedBoxes is weighted box fusion: an object's box is the mean of its detections weighted by their scores, and its score falls
	// with every view that missed it. Solovyev, Wang, Gabruseva: "Weighted boxes fusion: Ensembling boxes from different object detection
	// models", Image and Vision Computing 107, 2021 (arXiv 1910.13302).
	WeightedBoxes Method = "wbf"
	// MajorityVote keeps an object that views with more than half of the weight have detected. Its box is that of WeightedBoxes, its score
	// the mean of those views.
	MajorityVote Method = "vote"
	// NMS keeps the best of overlapping detections: non-maximum suppression over all views.
	NMS Method = "nms"
)

// Methods lists all methods.
func Methods() []Method { return []Method{WeightedBoxes, MajorityVote, NMS} }

// DefaultIoU is the overlap above which two detections of a class are one object.
const DefaultIoU = 0.55

// Fuser fuses the detections of several views of an image. Set the exported fields before Open. It keeps its memory from image to image;
// one goroutine at a time may use it.
type Fuser struct {
	// Method is WeightedBoxes when empty.
	Method Method
	// IoU is DefaultIoU when 0.
	IoU float32
	// MinScore is the score below which a detection is ignored.
	MinScore float32
	// Weights are the weights of the views, above 0; nil for equal ones.
	Weights []float32
	// UseMaxScore gives an object the highest score of its detections, instead of the mean in which a missing one counts as 0.
	UseMaxScore bool

	weights []float64 // set by Open
	sum     float64
	highest float64

	detections []detected
	objects    []object
	mask       []float64
}

// detected is a detection of one view.
type detected struct {
	detection *postprocess.Detection
	view      int
	score     float64 // times the view's weight
	next      int32   // of the same object, -1 for none
}

// object is a group of detections of the same object.
type object struct {
	class       int
	box         [4]float64
	sum         float64 // of the scores
	weighted    [4]float64
	best        float64
	first, last int32
	count       int
}

// Open validates the settings for so many views.
func (f *Fuser) Open(views int) error {
	f.Method = cmp.Or(f.Method, WeightedBoxes)
	f.IoU = cmp.Or(f.IoU, DefaultIoU)
	switch {
	case !slices.Contains(Methods(), f.Method):
		return fmt.Errorf("fusion %q must be one of %v", f.Method, Methods())
	case !(f.IoU > 0 && f.IoU < 1):
		return fmt.Errorf("fusion at an overlap of %v, must be between 0 and 1", f.IoU)
	case len(f.Weights) != 0 && len(f.Weights) != views:
		return fmt.Errorf("%d weights, must be %d", len(f.Weights), views)
	}
	f.weights = make([]float64, views)
	f.sum, f.highest = 0, 0
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

// Fuse appends the fused objects of all views to dst, best first. Detections with details get details of their own; boxes alone need no
// allocation once there is room.
func (f *Fuser) Fuse(dst []postprocess.Detection, views [][]postprocess.Detection) []postprocess.Detection {
	f.detections, f.objects = f.detections[:0], f.objects[:0]
	for view, all := range views {
		for i := range all {
			found := &all[i]
			if found.Score < f.MinScore || !(found.Width() > 0 && found.Height() > 0) {
				continue
			}
			f.detections = append(f.detections, detected{detection: found, view: view, score: float64(found.Score) * f.weights[view], next: -1})
		}
	}
	slices.SortStableFunc(f.detections, func(a, b detected) int { return cmp.Compare(b.score, a.score) })
	for i := range f.detections {
		f.join(int32(i))
	}
	first := len(dst)
	for i := range f.objects {
		if score, kept := f.score(&f.objects[i]); kept {
			dst = append(dst, f.detection(&f.objects[i], score))
		}
	}
	slices.SortStableFunc(dst[first:], func(a, b postprocess.Detection) int { return cmp.Compare(b.Score, a.Score) })
	return dst
}

// join adds a detection to the object that it overlaps most, or starts a new one.
func (f *Fuser) join(number int32) {
	s := &f.detections[number]
	b := s.detection.Box
	box := [4]float64{float64(b.X1), float64(b.Y1), float64(b.X2), float64(b.Y2)}
	best, overlap := -1, float64(f.IoU)
	for i := range f.objects {
		o := &f.objects[i]
		if o.class != s.detection.Class {
			continue
		}
		if iou := iou(&o.box, &box); iou > overlap {
			best, overlap = i, iou
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
	f.detections[o.last].next = number
	o.last = number
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

// score returns the score of an object, and false if the vote rejects it.
func (f *Fuser) score(o *object) (score float64, kept bool) {
	switch {
	case f.Method == NMS || f.UseMaxScore && f.Method == WeightedBoxes:
		return o.best / f.highest, true
	case f.Method == WeightedBoxes:
		return o.sum / float64(o.count) * float64(min(len(f.weights), o.count)) / f.sum, true
	}
	weight := 0.0
	for i := o.first; i >= 0; i = f.detections[i].next {
		if !f.before(o, i) {
			weight += f.weights[f.detections[i].view]
		}
	}
	all := 0.0
	for i := o.first; i >= 0; i = f.detections[i].next {
		all += f.weights[f.detections[i].view]
	}
	return o.sum / all, 2*weight > f.sum
}

// before reports whether the view has an earlier detection of the object.
func (f *Fuser) before(o *object, number int32) bool {
	for i := o.first; i != number; i = f.detections[i].next {
		if f.detections[i].view == f.detections[number].view {
			return true
		}
	}
	return false
}

// detection returns the fused detection of an object.
func (f *Fuser) detection(o *object, score float64) postprocess.Detection {
	best := f.detections[o.first].detection
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
