package head

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// masks is memory for the masks of detections, for heads of instance segmentation.
type masks struct {
	results perImage[maskResult]
}

type maskResult struct {
	details []postprocess.Detail
	masks   []postprocess.Mask
	logits  []float32
}

// begin gives every detection a mask that place returns, without its logits, and returns the masks and memory for all logits. place leaves
// the first point of the mask on the network's grid in X and Y.
func (m *masks) begin(in *input, found []postprocess.Detection, place func(i int) postprocess.Mask) (
	all []postprocess.Mask, logits []float32,
) {
	result := m.results.at(in.index)
	setDetails(&result.details, found)
	all = resize(&result.masks, len(found))
	numbers := 0
	for i := range found {
		all[i] = place(i)
		found[i].Detail.Mask = &all[i]
		numbers += all[i].Width * all[i].Height
	}
	return all, resize(&result.logits, numbers)
}

// gridOffset returns the centre of the image's first pixel, relative to a point of a grid over the network's input.
func (in *input) gridOffset(size image.Point, column, row int) (x, y float32) {
	t := &in.transform
	x = (t.ScaleX/2+t.PadX)*float32(size.X)/float32(in.match.width) - 0.5 - float32(column)
	y = (t.ScaleY/2+t.PadY)*float32(size.Y)/float32(in.match.height) - 0.5 - float32(row)
	return x, y
}

// gridStep returns the distance between two pixels of the image on a grid over the network's input.
func (in *input) gridStep(size image.Point) (x, y float32) {
	t := &in.transform
	return t.ScaleX * float32(size.X) / float32(in.match.width), t.ScaleY * float32(size.Y) / float32(in.match.height)
}

func ceil(v float32) int { return int(math.Ceil(float64(v))) }
