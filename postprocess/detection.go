// Package postprocess holds the results of networks: detections on the source image, tracks, maps, masks, labels and thresholds. Its
// subdirectories recognise and decode network outputs (head, decode, scan), run networks on images (predict), and process detections
// further (track, zone, draw, evaluate, format).
package postprocess

import (
	"image"
	"slices"
)

// Box is an axis-aligned rectangle in pixels: X1, Y1 is the top left corner, X2, Y2 the bottom right one.
type Box struct{ X1, Y1, X2, Y2 float32 }

// Width returns the horizontal side in pixels.
func (b Box) Width() float32 { return b.X2 - b.X1 }

// Height returns the vertical side in pixels.
func (b Box) Height() float32 { return b.Y2 - b.Y1 }

// Area returns the area in square pixels.
func (b Box) Area() float32 { return (b.X2 - b.X1) * (b.Y2 - b.Y1) }

// IoU returns the intersection over union of two boxes, 0 if they do not overlap or have no area.
func (b Box) IoU(other Box) float32 {
	width := min(b.X2, other.X2) - max(b.X1, other.X1)
	height := min(b.Y2, other.Y2) - max(b.Y1, other.Y1)
	if width <= 0 || height <= 0 {
		return 0
	}
	shared := width * height
	return shared / (b.Area() + other.Area() - shared)
}

// Detection is one object in one image, in pixels of the source image. A classification is a Detection whose box is the whole image.
type Detection struct {
	Box
	Score  float32 // 0 to 1
	Class  int     // index into the model's labels
	Detail *Detail // nil for tasks without details
}

// Detail holds the results of a detection that only some tasks provide; fields that the task does not provide are nil. It belongs to the
// producer of the detection and is valid as long as the slice that holds the detection; Detection.Clone returns a copy that can be kept. It
// is a separate struct to keep the detections of plain detectors small.
type Detail struct {
	// Mask is the object's shape within the box.
	Mask *Mask
	// Keypoints are in the order of the model's training data.
	Keypoints []Keypoint
	// Skeleton names the keypoints; nil if their names are unknown.
	Skeleton *Skeleton
	// Oriented is the oriented box (OBB) that Box encloses.
	Oriented *OrientedBox
	// Probabilities of all classes, by class number.
	Probabilities []float32
	// Embedding is a vector of length 1 for re-identification; the cosine of two embeddings measures the similarity of the objects.
	Embedding []float32
	// Attributes are the results of second networks.
	Attributes []Attribute
}

// Keypoint is a keypoint of an object in pixels of the source image.
type Keypoint struct {
	X, Y  float32
	Score float32 // probability that it is visible, 0 to 1; 1 for models without one
}

// OrientedBox is a rectangle given by centre and size in pixels of the source image, rotated clockwise by Angle radians.
type OrientedBox struct {
	X, Y, Width, Height float32
	Angle               float32
}

// Translate moves the detection with all its details by a number of pixels.
func (f *Detection) Translate(by image.Point) {
	x, y := float32(by.X), float32(by.Y)
	f.X1 += x
	f.X2 += x
	f.Y1 += y
	f.Y2 += y
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
