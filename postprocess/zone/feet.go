package zone

import (
	"image"

	"github.com/edge-infer/edge-infer/postprocess"
)

// COCO's ankles among the 17 keypoints of a person, and the minimum score of a visible keypoint.
const (
	leftAnkle        = 15
	rightAnkle       = 16
	minKeypointScore = 0.5
)

// feet returns where an object touches the ground: the middle of a person's visible ankles, else the middle of the mask's lowest row, else
// of the box's lower edge.
func (a *Analytics) feet(f *postprocess.Detection) Point {
	if d := f.Detail; d != nil {
		if p, seen := ankles(d); seen {
			return p
		}
		if d.Mask != nil {
			if p, there := a.lowestPoint(d.Mask); there {
				return p
			}
		}
	}
	return Bottom.onBox(f.Box)
}

func ankles(d *postprocess.Detail) (p Point, seen bool) {
	if !d.IsPerson() {
		return p, false
	}
	count := 0.0
	for _, k := range d.Keypoints[leftAnkle : rightAnkle+1] {
		if k.Score >= minKeypointScore {
			p.X, p.Y, count = p.X+float64(k.X), p.Y+float64(k.Y), count+1
		}
	}
	if count == 0 {
		return p, false
	}
	return Point{p.X / count, p.Y / count}, true
}

// lowestPoint returns the middle of the lowest row of a mask's pixels.
func (a *Analytics) lowestPoint(m *postprocess.Mask) (Point, bool) {
	bounds := m.Bounds.Intersect(image.Rect(0, 0, a.Width, a.Height))
	if bounds.Empty() {
		return Point{}, false
	}
	a.runs = m.AppendRuns(a.runs[:0], a.Width, a.Height)
	row, left := -1, 0
	right, at := 0, 0
	for i, length := range a.runs {
		at += int(length)
		if i&1 == 0 || length == 0 {
			continue
		}
		// A run over several columns contains the bottom row of all but the last of them.
		column, end := (at-1)/a.Height, (at-1)%a.Height
		if column > (at-int(length))/a.Height {
			end = a.Height - 1
		}
		switch {
		case end > row:
			row, left, right = end, column, column
		case end == row:
			right = column
		}
	}
	if row < 0 {
		return Point{}, false
	}
	return Point{float64(left+right+1) / 2, float64(row + 1)}, true
}
