package evaluate

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// IgnoredClass is the class number of labels that do not count.
const IgnoredClass = 255

// Segmentation measures semantic segmentation: every labelled pixel is compared with the cell of the map that contains it. Classes is the
// number of classes, FirstClass the label of class 0.
type Segmentation struct {
	Classes, FirstClass int

	confusion []int64 // pixels by labelled and predicted class; the last column is "no class"
}

// Add compares the map of an image of the given size, nil if the network returned none, with its labels.
func (p *Segmentation) Add(m *postprocess.DenseMap, width, height int, labels *LabelMap) {
	if p.confusion == nil {
		p.confusion = make([]int64, p.Classes*(p.Classes+1))
	}
	for y := range labels.Height {
		row := (2*y + 1) * height / (2 * labels.Height)
		for x := range labels.Width {
			number := labels.Numbers[y*labels.Width+x]
			class := int(number) - p.FirstClass
			if number == IgnoredClass || class < 0 || class >= p.Classes {
				continue
			}
			seen := p.Classes
			if m != nil {
				column, row := m.CellAt((2*x+1)*width/(2*labels.Width), row)
				seen = min(int(m.Classes[row*m.Width+column]), p.Classes)
			}
			p.confusion[class*(p.Classes+1)+seen]++
		}
	}
}

// SegmentationResult holds the scores of segmentation maps. MeanIoU is the mean over the labelled classes; Accuracy is the share of correct
// pixels.
type SegmentationResult struct {
	MeanIoU, Accuracy float64
	Pixels            int64
	Classes           []ClassSegmentation // labelled classes only
}

// ClassSegmentation holds the scores of one class.
type ClassSegmentation struct {
	Class         int
	Pixels        int64
	IoU, Accuracy float64
}

// Result returns the scores over all images.
func (p *Segmentation) Result() (r SegmentationResult) {
	columns := p.Classes + 1
	right := int64(0)
	for class := range p.Classes {
		if p.confusion == nil {
			break
		}
		labelled, seen := int64(0), int64(0)
		for other := range columns {
			labelled += p.confusion[class*columns+other]
		}
		for other := range p.Classes {
			seen += p.confusion[other*columns+class]
		}
		if labelled == 0 {
			continue
		}
		both := p.confusion[class*columns+class]
		right += both
		r.Pixels += labelled
		c := ClassSegmentation{
			Class: class, Pixels: labelled, IoU: float64(both) / float64(labelled+seen-both), Accuracy: float64(both) / float64(labelled),
		}
		r.MeanIoU += c.IoU
		r.Classes = append(r.Classes, c)
	}
	if len(r.Classes) > 0 {
		r.MeanIoU /= float64(len(r.Classes))
		r.Accuracy = float64(right) / float64(r.Pixels)
	}
	return r
}

// Depth measures depth maps by the protocol of Eigen, Puhrsch and Fergus, "Depth map prediction from a single image using a multi-scale
// deep network", 2014, per image and then averaged over images, as Depth Anything and Ultralytics do. Pixels with a labelled depth between
// minDepth and MaxDepth count; predictions are clamped to this range.
type Depth struct {
	// Scale is the label value of one metre, 0 for 1.
	Scale float64
	// MaxDepth is the largest labelled depth that counts, in metres.
	MaxDepth float64
	// Align scales the predictions of an image to the median of its labels, for networks of relative depth.
	Align bool

	images             int
	error, rmse, delta float64
}

// minDepth in metres and minPixels, the labelled pixels that an image needs, are those of Depth Anything.
const (
	minDepth  = .001
	minPixels = 10
)

// Add compares the map of an image of the given size, nil if the network returned none, with its labels. Depths are interpolated between
// the cells.
func (d *Depth) Add(m *postprocess.DenseMap, width, height int, labels *LabelMap) {
	scale := d.Scale
	if scale == 0 {
		scale = 1
	}
	var truths, seen, known, finite []float32
	for y := range labels.Height {
		for x := range labels.Width {
			truth := float64(labels.Numbers[y*labels.Width+x]) / scale
			if !(truth > minDepth && truth < d.MaxDepth) {
				continue
			}
			depth := float32(math.NaN())
			if m != nil {
				at := func(pixel, pixels, side int) float32 { return (float32(pixel)+.5)*float32(side)/float32(pixels) - .5 }
				depth = m.DepthAt(at(x, labels.Width, width), at(y, labels.Height, height))
			}
			truths, seen = append(truths, float32(truth)), append(seen, depth)
			if depth-depth == 0 {
				known, finite = append(known, float32(truth)), append(finite, max(depth, minDepth))
			}
		}
	}
	if len(truths) < minPixels {
		return
	}
	factor := float32(1)
	if d.Align && len(known) > 0 {
		factor = lowerMedian(known) / lowerMedian(finite)
	}
	var relative, square float64
	near := 0
	for i, depth := range seen {
		truth, got := float64(truths[i]), float64(depth*factor)
		switch {
		case math.IsNaN(got):
			got = d.MaxDepth
		default:
			got = min(max(got, minDepth), d.MaxDepth)
		}
		relative += math.Abs(got-truth) / truth
		square += (got - truth) * (got - truth)
		if max(got/truth, truth/got) < 1.25 {
			near++
		}
	}
	count := float64(len(seen))
	d.images++
	d.error += relative / count
	d.rmse += math.Sqrt(square / count)
	d.delta += float64(near) / count
}

// DepthResult holds the mean relative error, the root mean square error in metres, and the share of pixels within a factor of 1.25.
type DepthResult struct {
	Images                 int
	AbsRel, RMSE, Delta125 float64
}

// Result returns the mean over the images with enough labels.
func (d *Depth) Result() DepthResult {
	count := float64(max(d.images, 1))
	return DepthResult{d.images, d.error / count, d.rmse / count, d.delta / count}
}

// lowerMedian sorts the numbers and returns their lower median.
func lowerMedian(numbers []float32) float32 {
	slices.Sort(numbers)
	return numbers[(len(numbers)-1)/2]
}
