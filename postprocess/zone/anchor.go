package zone

import (
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Anchor is what stands for an object: a point, or for zones all of its box or mask. Beside those named here it is a keypoint by its name:
// one of the network's, or of COCO's.
type Anchor string

// The anchors; Bottom, the middle of the lower edge, is where things touch the ground.
const (
	Bottom Anchor = "bottom"
	Centre Anchor = "centre"
	Top    Anchor = "top"
	// Feet is where keypoints or a mask say that the object touches the ground, and Bottom without them.
	Feet Anchor = "feet"
	// BoxArea is the whole box, MaskArea the whole mask, and the box of an object without one: see Zone.Share.
	BoxArea  Anchor = "box"
	MaskArea Anchor = "mask"
)

// isPoint reports whether the anchor is a point that is known, or none. keypoints are the names of the network's own.
func (a Anchor) isPoint(keypoints []string) bool {
	return slices.Contains([]Anchor{"", Bottom, Centre, Top, Feet}, a) || slices.Contains(postprocess.PersonKeypoints(), string(a)) ||
		slices.Contains(keypoints, string(a))
}

// isArea reports whether the anchor is no point.
func (a Anchor) isArea() bool { return a == BoxArea || a == MaskArea }

// onBox is the anchor's place on a box.
func (a Anchor) onBox(b postprocess.Box) Point {
	p := Point{(float64(b.X1) + float64(b.X2)) / 2, float64(b.Y2)}
	switch a {
	case Centre:
		p.Y = (float64(b.Y1) + float64(b.Y2)) / 2
	case Top:
		p.Y = float64(b.Y1)
	}
	return p
}

// anchorPoint is the point that stands for the object that is seen so. A keypoint that is not seen has the place of Bottom.
func (o *objectState) anchorPoint(anchor Anchor, f *postprocess.Detection) Point {
	switch anchor {
	case Feet:
		return o.feet
	case Bottom, Centre, Top:
		return anchor.onBox(f.Box)
	}
	if k, there := f.Detail.Keypoint(string(anchor)); there && k.Score >= minKeypointScore {
		return Point{float64(k.X), float64(k.Y)}
	}
	return anchor.onBox(f.Box)
}
