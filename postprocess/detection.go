// Package postprocess is what the rooms after the network talk of: detections on the source image, their tracks, labels and thresholds. Its
// directories make them (head, scan), give them to whoever has images (predict), and go on from them.
package postprocess

import (
	"image"
	"slices"
)

// Box is an axis-aligned rectangle in pixels: X1, Y1 is the top left corner, X2, Y2 the bottom right one.
type Box struct{ X1, Y1, X2, Y2 float32 }

// Width is the horizontal side in pixels.
func (b Box) Width() float32 { return b.X2 - b.X1 }

// Height is the vertical side in pixels.
func (b Box) Height() float32 { return b.Y2 - b.Y1 }

// Area is width times height in square pixels.
func (b Box) Area() float32 { return (b.X2 - b.X1) * (b.Y2 - b.Y1) }

// IoU is the intersection over the union of two boxes, 0 when they do not touch or have no area.
func (b Box) IoU(other Box) float32 {
	width := min(b.X2, other.X2) - max(b.X1, other.X1)
	height := min(b.Y2, other.Y2) - max(b.Y1, other.Y1)
	if width <= 0 || height <= 0 {
		return 0
	}
	shared := width * height
	return shared / (b.Area() + other.Area() - shared)
}

// Finding is one object in one image, in pixels of the source image. A classification is a Finding whose box is the whole image.
//
// What only some tasks give is in Detail.
type Detection struct {
	Box
	Score  float32 // 0 to 1
	Class  int     // index into the model's labels
	Detail *Detail // nil where the task gives none
}

// Detail is what some tasks say of an object beside its box; what the task does not give is nil. It belongs to whoever gave the detection
// and is valid for as long as the slice that holds the detection; Finding.Clone makes one that can be kept. It is apart from the detection so
// that a plain detector's detections are not made longer by it.
type Detail struct {
	// Mask is the object's shape within the box.
	Mask *Mask
	// Keypoints are the object's, in the order that the model was trained with.
	Keypoints []Keypoint
	// Skeleton names the keypoints; nil where nobody knows their names.
	Skeleton *Skeleton
	// OrientedBox is the rotated rectangle that Box encloses.
	Oriented *OrientedBox
	// Probabilities are those of every class, by class number.
	Probabilities []float32
	// Embedding tells objects of one kind apart: a vector of length 1, the nearer to that of another image the more they look alike.
	Embedding []float32
	// Attributes are what further networks say of the object.
	Attributes []Attribute
}

// Keypoint is one point of an object in pixels of the source image.
type Keypoint struct {
	X, Y  float32
	Score float32 // that the point is visible, 0 to 1; 1 for models that do not tell
}

// OrientedBox is a rectangle around its centre in pixels of the source image, turned clockwise by Angle radians.
type OrientedBox struct {
	X, Y, Width, Height float32
	Angle               float32
}

// Translate shifts the detection, with all its details, by so many pixels.
func (f *Detection) Translate(by image.Point) {
	x, y := float32(by.X), float32(by.Y)
	f.X1, f.X2, f.Y1, f.Y2 = f.X1+x, f.X2+x, f.Y1+y, f.Y2+y
	if f.Detail == nil {
		return
	}
	if mask := f.Detail.Mask; mask != nil {
		mask.Bounds = mask.Bounds.Add(by)
		mask.X, mask.Y = mask.X-x*mask.StepX, mask.Y-y*mask.StepY
	}
	for i := range f.Detail.Keypoints {
		f.Detail.Keypoints[i].X += x
		f.Detail.Keypoints[i].Y += y
	}
	if turned := f.Detail.Oriented; turned != nil {
		turned.X, turned.Y = turned.X+x, turned.Y+y
	}
}

// Clone returns a detection that shares no memory with f.
func (f *Detection) Clone() Detection {
	c := *f
	if f.Detail == nil {
		return c
	}
	d := *f.Detail
	if d.Mask != nil {
		mask := *d.Mask
		mask.Logits, mask.Runs = slices.Clone(mask.Logits), slices.Clone(mask.Runs)
		d.Mask = &mask
	}
	if d.Oriented != nil {
		oriented := *d.Oriented
		d.Oriented = &oriented
	}
	d.Keypoints, d.Probabilities = slices.Clone(d.Keypoints), slices.Clone(d.Probabilities)
	d.Attributes, d.Embedding = slices.Clone(d.Attributes), slices.Clone(d.Embedding)
	c.Detail = &d
	return c
}
