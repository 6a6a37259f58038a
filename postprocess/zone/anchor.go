package zone

import (
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Anchor selects the point that represents an object or, for zones, the whole box or mask. Besides the anchors below it may be the name of
// a keypoint, of the network or of COCO.
type Anchor string

// The anchors. Bottom is the middle of the lower edge, where objects touch the ground.
const (
	Bottom Anchor = "bottom"
	Centre Anchor = "centre"
	Top    Anchor = "top"
	// Feet is where keypoints or a mask show that the object touches the ground, Bottom without them.
	Feet Anchor = "feet"
	// BoxArea is the whole box. MaskArea is the whole mask, or the box of an object without a mask; see Zone.Share.
	BoxArea  Anchor = "box"
	MaskArea Anchor = "mask"
)

// isPoint reports whether the anchor is empty or a known point. keypoints are the names of the network's keypoints.
func (a Anchor) isPoint(keypoints []string) bool {
	return slices.Contains([]Anchor{"", Bottom, Centre, Top, Feet}, a) || slices.Contains(postprocess.PersonKeypoints(), string(a)) ||
		slices.Contains(keypoints, string(a))
}

// isArea reports whether the anchor is an area.
func (a Anchor) isArea() bool { return a == BoxArea || a == MaskArea }

// onBox returns the anchor's position on a box.
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

// anchorPoint returns the point that represents a detected object. An invisible keypoint is replaced by Bottom.
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
