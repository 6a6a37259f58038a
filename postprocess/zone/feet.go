package zone

import (
	"image"

	"github.com/edge-infer/edge-infer/postprocess"
)

// COCO's people have 17 keypoints, of which these are the ankles; one that scores less is not where it seems.
const (
	leftAnkle    = 15
	rightAnkle   = 16
	minKeypointScore = 0.5
)

// feet is where an object touches the ground by what its network says of it: the middle of a person's ankles, or the one that is seen, or
// the middle of a mask's lowest row. Where it says nothing it is the middle of the box's lower edge.
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

// lowestPoint is the middle of the lowest row of pixels of a mask.
func (a *Analytics) lowestPoint(m *postprocess.Mask) (Point, bool) {
	bounds := m.Bounds.Intersect(image.Rect(0, 0, a.Width, a.Height))
	if bounds.Empty() {
		return Point{}, false
	}
	a.runs = m.AppendRuns(a.runs[:0], a.Width, a.Height)
	row, left, right, at := -1, 0, 0, 0
	for i, length := range a.runs {
		at += int(length)
		if i&1 == 0 || length == 0 {
			continue
		}
		// A run that goes over several columns ends no lower than it begins to: it holds their last row.
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
