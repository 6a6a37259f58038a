package ensemble

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// fuseDetail fuses the details of an object's detections into those of the best one, which found has: masks and class probabilities by
// their mean probability, keypoints by their mean position, weighted by the scores. An oriented box stays that of the best detection, and
// with it the box around it, because a mean of oriented boxes need not fit the object.
func (f *Fuser) fuseDetail(o *object, found *postprocess.Detection) {
	d := found.Detail
	if d.Oriented != nil {
		found.Box = f.detections[o.first].detection.Box
	}
	if d.Mask != nil && d.Mask.Valid() {
		f.fuseMask(o, d.Mask)
	}
	f.fuseKeypoints(o, d.Keypoints)
	f.fuseProbabilities(o, d.Probabilities)
}

func (f *Fuser) fuseKeypoints(o *object, to []postprocess.Keypoint) {
	for k := range to {
		var x, y, sum, score, weight float64
		for i := o.first; i >= 0; i = f.detections[i].next {
			s := &f.detections[i]
			if s.detection.Detail == nil || len(s.detection.Detail.Keypoints) != len(to) {
				continue
			}
			p := &s.detection.Detail.Keypoints[k]
			share := s.score * max(float64(p.Score), 1e-6)
			x, y, sum = x+share*float64(p.X), y+share*float64(p.Y), sum+share
			score, weight = score+s.score*float64(p.Score), weight+s.score
		}
		if sum > 0 {
			to[k] = postprocess.Keypoint{X: float32(x / sum), Y: float32(y / sum), Score: float32(score / weight)}
		}
	}
}

func (f *Fuser) fuseProbabilities(o *object, to []float32) {
	for k := range to {
		var sum, weight float64
		for i := o.first; i >= 0; i = f.detections[i].next {
			s := &f.detections[i]
			if s.detection.Detail != nil && len(s.detection.Detail.Probabilities) == len(to) {
				w := f.weights[s.view]
				sum, weight = sum+w*float64(s.detection.Detail.Probabilities[k]), weight+w
			}
		}
		if weight > 0 {
			to[k] = float32(sum / weight)
		}
	}
}

// fuseMask replaces a mask by the mean of all masks of the object. Its grid is enlarged where others reach beyond it.
func (f *Fuser) fuseMask(o *object, to *postprocess.Mask) {
	bounds := to.Bounds
	for i := o.first; i >= 0; i = f.detections[i].next {
		if m := mask(f.detections[i].detection); m != nil {
			bounds = bounds.Union(m.Bounds)
		}
	}
	f.mask = f.mask[:0]
	grid := enlarge(to, bounds)
	for row := range grid.Height {
		y := (float64(row) - float64(grid.Y)) / float64(grid.StepY)
		for column := range grid.Width {
			x := (float64(column) - float64(grid.X)) / float64(grid.StepX)
			var sum, weight float64
			for i := o.first; i >= 0; i = f.detections[i].next {
				if m := mask(f.detections[i].detection); m != nil {
					sum, weight = sum+f.detections[i].score*probability(m, x, y), weight+f.detections[i].score
				}
			}
			f.mask = append(f.mask, sum/weight)
		}
	}
	grid.Logits = grid.Logits[:0]
	for _, p := range f.mask {
		const least = 1e-4
		p = min(max(p, least), 1-least)
		grid.Logits = append(grid.Logits, float32(math.Log(p/(1-p))))
	}
	*to = grid
}

func mask(f *postprocess.Detection) *postprocess.Mask {
	if f.Detail == nil || f.Detail.Mask == nil || !f.Detail.Mask.Valid() {
		return nil
	}
	return f.Detail.Mask
}

// maxGrid bounds the points of a fused mask.
const maxGrid = 1 << 20

// enlarge returns a mask's grid for larger bounds, with the same steps. A grid above maxGrid stays as it is.
func enlarge(m *postprocess.Mask, bounds image.Rectangle) postprocess.Mask {
	grid := *m
	grid.Bounds = bounds
	left := int(math.Floor(float64(m.X + float32(bounds.Min.X)*m.StepX)))
	top := int(math.Floor(float64(m.Y + float32(bounds.Min.Y)*m.StepY)))
	right := int(math.Ceil(float64(m.X + float32(bounds.Max.X-1)*m.StepX)))
	bottom := int(math.Ceil(float64(m.Y + float32(bounds.Max.Y-1)*m.StepY)))
	left, top = min(left, 0), min(top, 0)
	right, bottom = max(right, m.Width-1), max(bottom, m.Height-1)
	if (right-left+1)*(bottom-top+1) > maxGrid {
		return grid
	}
	grid.Width, grid.Height = right-left+1, bottom-top+1
	grid.X, grid.Y = m.X-float32(left), m.Y-float32(top)
	return grid
}

// probability returns the probability that a pixel belongs to the object, interpolated between the points of the grid; 0 outside the
// bounds.
func probability(m *postprocess.Mask, x, y float64) float64 {
	const half = 0.5
	if x < float64(m.Bounds.Min.X)-half || x > float64(m.Bounds.Max.X)-half || y < float64(m.Bounds.Min.Y)-half ||
		y > float64(m.Bounds.Max.Y)-half {
		return 0
	}
	return 1 / (1 + math.Exp(-logit(m, x, y)))
}

// logit interpolates the grid at a pixel; beyond the grid its border continues.
func logit(m *postprocess.Mask, x, y float64) float64 {
	column := min(max(float64(m.X)+x*float64(m.StepX), 0), float64(m.Width-1))
	row := min(max(float64(m.Y)+y*float64(m.StepY), 0), float64(m.Height-1))
	left, top := int(column), int(row)
	right, bottom := min(left+1, m.Width-1), min(top+1, m.Height-1)
	across, down := column-float64(left), row-float64(top)
	at := func(c, r int) float64 { return float64(m.Logits[r*m.Width+c]) }
	above := at(left, top)*(1-across) + at(right, top)*across
	below := at(left, bottom)*(1-across) + at(right, bottom)*across
	return above*(1-down) + below*down
}

// UnionMask returns the union of the masks of an object's pieces, on the enlarged grid of the first one. It is false if a mask is invalid
// or the grid would be too large.
func UnionMask(pieces []*postprocess.Mask) (postprocess.Mask, bool) {
	if len(pieces) == 0 {
		return postprocess.Mask{}, false
	}
	bounds := image.Rectangle{}
	for _, m := range pieces {
		if !m.Valid() {
			return postprocess.Mask{}, false
		}
		bounds = bounds.Union(m.Bounds)
	}
	grid, last := enlarge(pieces[0], bounds), bounds.Max.Sub(image.Pt(1, 1))
	if float64(grid.X)+float64(last.X)*float64(grid.StepX) > float64(grid.Width) ||
		float64(grid.Y)+float64(last.Y)*float64(grid.StepY) > float64(grid.Height) {
		return postprocess.Mask{}, false
	}
	grid.Logits = make([]float32, 0, grid.Width*grid.Height)
	for row := range grid.Height {
		y := (float64(row) - float64(grid.Y)) / float64(grid.StepY)
		for column := range grid.Width {
			x := (float64(column) - float64(grid.X)) / float64(grid.StepX)
			const none = -9
			best := float64(none)
			for _, m := range pieces {
				// A piece continues for one point of the grid beyond its bounds, so that interpolation does not end it early.
				across, down := 1/float64(m.StepX), 1/float64(m.StepY)
				if x > float64(m.Bounds.Min.X)-across && x < float64(m.Bounds.Max.X-1)+across &&
					y > float64(m.Bounds.Min.Y)-down && y < float64(m.Bounds.Max.Y-1)+down {
					best = max(best, logit(m, x, y))
				}
			}
			grid.Logits = append(grid.Logits, float32(best))
		}
	}
	return grid, true
}
