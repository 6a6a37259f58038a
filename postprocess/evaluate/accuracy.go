// Package evaluate measures detectors, segmentation and depth against ground truth and against each other: average precision by the COCO
// protocol, agreement of two engines, mean IoU and depth errors. It also reads the usual label files.
package evaluate

import (
	"cmp"
	"slices"
	"sort"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Truth is one labelled object, in pixels of its image.
type Truth struct {
	postprocess.Box
	Class int
	// Crowd marks a region with many objects: detections in it count neither for nor against.
	Crowd bool
	// Mask, Keypoints and Oriented are the labels of other tasks; nil if not labelled. Unlabelled keypoints have score 0.
	Mask      *Region
	Keypoints []postprocess.Keypoint
	// Deviations are the keypoints' OKS sigmas in shares of the object's scale; nil for COCO's, or the same for all.
	Deviations []float64
	Oriented   *postprocess.OrientedBox
	// Area is the area of the object itself in square pixels, 0 if not labelled.
	Area float64

	relative relativeLabel
}

const (
	thresholds    = 10  // IoU 0.50, 0.55 to 0.95
	recallPoints  = 101 // recall 0, 0.01 to 1
	maxDetections = 100 // per class and image, highest scores first
)

// Accuracy accumulates the detections of many images. The zero value is ready, for boxes; one goroutine at a time may use it.
type Accuracy struct {
	// Similarity is the measure that matches detections and objects.
	Similarity Similarity

	classes []classMatches
	images  int
	sorted  bool

	// Scratch memory of Add.
	best    []int
	truths  []int
	overlap []float64 // of one detection with each of the truths
	runs    postprocess.Runs
	matched [thresholds][]bool
}

// classMatches holds the results of one class.
type classMatches struct {
	truths     []int32 // image of each object
	detections []match
}

// match is one detection with a bit per IoU threshold. A detection matched to a crowd is a hit that is ignored.
type match struct {
	score        float32
	img          int32
	hit, ignored uint16
}

// Curve is the precision-recall curve at IoU 0.5, a point per distinct score in descending order.
type Curve []CurvePoint

// CurvePoint is the precision and recall of all detections with at least this Score.
type CurvePoint struct {
	Score             float32
	Precision, Recall float64
}

// ClassAccuracy is the accuracy of one class.
type ClassAccuracy struct {
	Class  int
	Truths int
	// AP50 is the average precision at IoU 0.5, AP the mean over IoU 0.50 to 0.95, both 0 to 1.
	AP50, AP float64
	Curve    Curve
}

// Result is the mean over the classes with at least one object.
type Result struct {
	MAP50, MAP float64
	Classes    []ClassAccuracy
}

// Add adds the detections of one image. Both slices may be reused afterwards.
func (a *Accuracy) Add(truths []Truth, detections []postprocess.Detection) {
	classes := len(a.classes)
	for i := range truths {
		classes = max(classes, truths[i].Class+1)
	}
	for i := range detections {
		classes = max(classes, detections[i].Class+1)
	}
	a.classes = append(a.classes, make([]classMatches, classes-len(a.classes))...)
	for class := range a.classes {
		a.add(class, truths, detections)
	}
	a.images++
	a.sorted = false
}

func (a *Accuracy) add(class int, truths []Truth, detections []postprocess.Detection) {
	into := &a.classes[class]
	// Ignored objects, such as crowds, are last: a detection matches one only if no other object fits.
	a.truths = a.truths[:0]
	for i := range truths {
		if truths[i].Class == class && !a.Similarity.ignores(&truths[i]) {
			a.truths = append(a.truths, i)
			into.truths = append(into.truths, int32(a.images))
		}
	}
	for i := range truths {
		if truths[i].Class == class && a.Similarity.ignores(&truths[i]) {
			a.truths = append(a.truths, i)
		}
	}
	a.best = a.best[:0]
	for i := range detections {
		if detections[i].Class == class {
			a.best = append(a.best, i)
		}
	}
	slices.SortStableFunc(a.best, func(i, j int) int { return cmp.Compare(detections[j].Score, detections[i].Score) })
	a.best = a.best[:min(len(a.best), a.Similarity.maxDetections())]
	for t := range thresholds {
		a.matched[t] = append(a.matched[t][:0], make([]bool, len(a.truths))...)
	}
	for _, i := range a.best {
		found := match{score: detections[i].Score, img: int32(a.images)}
		a.overlap, a.runs = a.overlap[:0], a.runs[:0]
		for _, at := range a.truths {
			a.overlap = append(a.overlap, a.Similarity.overlap(&detections[i], &truths[at], &a.runs))
		}
		for t := range thresholds {
			hit, ignored := a.matchBest(t, truths)
			if hit {
				found.hit |= 1 << t
			}
			if ignored {
				found.ignored |= 1 << t
			}
		}
		into.detections = append(into.detections, found)
	}
}

// matchBest matches the detection whose overlaps are known with the best free object at one threshold.
func (a *Accuracy) matchBest(t int, truths []Truth) (hit, ignored bool) {
	chosen, overlap := -1, 0.5+0.05*float64(t)
	for at, i := range a.truths {
		truth := &truths[i]
		if a.matched[t][at] && !truth.Crowd {
			continue
		}
		if chosen >= 0 && a.Similarity.ignores(truth) && !a.Similarity.ignores(&truths[a.truths[chosen]]) {
			break
		}
		if a.overlap[at] >= overlap {
			chosen, overlap = at, a.overlap[at]
		}
	}
	if chosen < 0 {
		return false, false
	}
	a.matched[t][chosen] = true
	return true, a.Similarity.ignores(&truths[a.truths[chosen]])
}

// overlapOf returns the IoU or, for a crowd, the share of the box inside it.
func overlapOf(box postprocess.Box, truth *Truth) float64 {
	width := float64(min(box.X2, truth.X2)) - float64(max(box.X1, truth.X1))
	height := float64(min(box.Y2, truth.Y2)) - float64(max(box.Y1, truth.Y1))
	if width <= 0 || height <= 0 {
		return 0
	}
	shared := width * height
	if truth.Crowd {
		return shared / area(box)
	}
	return shared / (area(box) + area(truth.Box) - shared)
}

func area(b postprocess.Box) float64 {
	return (float64(b.X2) - float64(b.X1)) * (float64(b.Y2) - float64(b.Y1))
}

// sort sorts the detections of each class by descending score.
func (a *Accuracy) sort() {
	if a.sorted {
		return
	}
	for class := range a.classes {
		slices.SortStableFunc(a.classes[class].detections, func(x, y match) int { return cmp.Compare(y.score, x.score) })
	}
	a.sorted = true
}

// Result returns the accuracy over all images.
func (a *Accuracy) Result() Result {
	a.sort()
	var result Result
	var scratch curves
	for class := range a.classes {
		matches := &a.classes[class]
		averages, measured := matches.averagePrecisions(nil, &scratch)
		if !measured {
			continue
		}
		of := ClassAccuracy{Class: class, Truths: len(matches.truths), AP50: averages[0], AP: mean(averages), Curve: matches.curve()}
		result.MAP50 += of.AP50
		result.MAP += of.AP
		result.Classes = append(result.Classes, of)
	}
	if n := float64(len(result.Classes)); n > 0 {
		result.MAP50 /= n
		result.MAP /= n
	}
	return result
}

func mean(averages [thresholds]float64) (sum float64) {
	for _, v := range averages {
		sum += v / thresholds
	}
	return sum
}

// curves is scratch memory of averagePrecisions: recall and precision at each hit, by threshold.
type curves [thresholds]struct{ recall, precision []float64 }

// averagePrecisions returns, for each threshold, the mean over 101 recalls of the best precision at that recall or a higher one. weights
// are the images' multiplicities, 1 if nil. measured is false without an object.
func (c *classMatches) averagePrecisions(weights []uint16, scratch *curves) (averages [thresholds]float64, measured bool) {
	truths := len(c.truths)
	if weights != nil {
		truths = 0
		for _, img := range c.truths {
			truths += int(weights[img])
		}
	}
	if truths == 0 {
		return averages, false
	}
	for t := range scratch {
		scratch[t].recall, scratch[t].precision = scratch[t].recall[:0], scratch[t].precision[:0]
	}
	taken := 0
	var hits, passed [thresholds]int
	for i := range c.detections {
		d, weight := &c.detections[i], 1
		if weights != nil {
			weight = int(weights[d.img])
		}
		taken += weight
		if d.hit == 0 || weight == 0 {
			continue
		}
		for t := range thresholds {
			switch bit := uint16(1) << t; {
			case d.ignored&bit != 0:
				passed[t] += weight
			case d.hit&bit != 0:
				// Precision is never the best between two hits.
				hits[t] += weight
				scratch[t].recall = append(scratch[t].recall, float64(hits[t])/float64(truths))
				scratch[t].precision = append(scratch[t].precision, float64(hits[t])/float64(taken-passed[t]))
			}
		}
	}
	for t := range averages {
		averages[t] = average(scratch[t].recall, scratch[t].precision)
	}
	return averages, true
}

// average replaces each precision by the best at that recall or a higher one and averages over recall.
func average(recall, precision []float64) (sum float64) {
	for i := len(precision) - 2; i >= 0; i-- {
		precision[i] = max(precision[i], precision[i+1])
	}
	at := 0
	for point := range recallPoints {
		for at < len(recall) && recall[at] < float64(point)/(recallPoints-1) {
			at++
		}
		if at == len(recall) {
			break
		}
		sum += precision[at]
	}
	return sum / recallPoints
}

func (c *classMatches) curve() Curve {
	var curve Curve
	hits, taken := 0, 0
	for i := range c.detections {
		d := &c.detections[i]
		if d.ignored&1 != 0 {
			continue
		}
		taken++
		if d.hit&1 != 0 {
			hits++
		}
		point := CurvePoint{d.score, float64(hits) / float64(taken), float64(hits) / float64(len(c.truths))}
		if n := len(curve); n > 0 && curve[n-1].Score == d.score {
			curve[n-1] = point
		} else {
			curve = append(curve, point)
		}
	}
	return curve
}

// At returns the precision and recall of the detections with at least that score; zeros if there are none.
func (c Curve) At(score float32) CurvePoint {
	below := sort.Search(len(c), func(i int) bool { return c[i].Score < score })
	if below == 0 {
		return CurvePoint{Score: score}
	}
	return c[below-1]
}

// F1 returns the harmonic mean of precision and recall.
func (p CurvePoint) F1() float64 {
	if p.Precision+p.Recall == 0 {
		return 0
	}
	return 2 * p.Precision * p.Recall / (p.Precision + p.Recall)
}
