package zone

import (
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Anchor is what stands for an object: a point, or for zones all of its box or mask. Beside those named here it is one of COCO's keypoints,
// as Keypoints names them.
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

// Keypoints are the names of COCO's, in their order.
func Keypoints() []Anchor {
	return []Anchor{
		"nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "left_wrist",
		"right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle",
	}
}

// isPoint reports whether the anchor is a point that is known, or none.
func (a Anchor) isPoint() bool {
	return slices.Contains([]Anchor{"", Bottom, Centre, Top, Feet}, a) || slices.Contains(Keypoints(), a)
}

// extended reports whether the anchor is no point.
func (a Anchor) extended() bool { return a == BoxArea || a == MaskArea }

// of is the anchor's place on a box.
func (a Anchor) of(b postprocess.Box) Point {
	p := Point{(float64(b.X1) + float64(b.X2)) / 2, float64(b.Y2)}
	switch a {
	case Centre:
		p.Y = (float64(b.Y1) + float64(b.Y2)) / 2
	case Top:
		p.Y = float64(b.Y1)
	}
	return p
}

// at is the point that stands for the object that is seen so. A keypoint that is not seen has the place of Bottom.
func (o *record) at(anchor spot, f *postprocess.Finding) Point {
	if anchor.Anchor == Feet {
		return o.feet
	}
	if d := f.Detail; anchor.keypoint >= 0 && d != nil && len(d.Keypoints) == people {
		if k := d.Keypoints[anchor.keypoint]; k.Score >= leastOfPoint {
			return Point{float64(k.X), float64(k.Y)}
		}
	}
	return anchor.of(f.Box)
}

// spot is an anchor with the number of its keypoint, -1 for none.
type spot struct {
	Anchor
	keypoint int
}

func spotOf(a Anchor) spot { return spot{a, slices.Index(Keypoints(), a)} }
