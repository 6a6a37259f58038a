// Package postprocess turns the numbers a network gives into boxes on the source picture: decoding of the output layouts, thresholds,
// non-maximum suppression and coordinates. It knows no engine and no camera; the frame loop hands it plain slices.
package postprocess

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

// Detection is one object in one frame, in pixels of the source picture. A classification is a Detection whose box is the whole picture.
type Detection struct {
	Box
	Score float32 // 0 to 1
	Class int     // index into the model's labels
}

// Transform takes a point of the network's input back to the source picture: source = (input - Pad) / Scale.
type Transform struct {
	ScaleX, ScaleY float32
	PadX, PadY     float32
}

// Source returns the box in source pixels, not clipped.
func (t Transform) Source(input Box) Box {
	return Box{
		X1: (input.X1 - t.PadX) / t.ScaleX, Y1: (input.Y1 - t.PadY) / t.ScaleY,
		X2: (input.X2 - t.PadX) / t.ScaleX, Y2: (input.Y2 - t.PadY) / t.ScaleY,
	}
}

// Stats counts what decoding one picture did. Candidates - Truncated is what suppression looked at.
type Stats struct {
	Candidates int // boxes over the threshold
	Truncated  int // candidates dropped because there were more than Decoder.MaxCandidates
	Suppressed int // candidates removed by a better overlapping box, or by Decoder.MaxDetections
	Outside    int // boxes that lie wholly outside the source picture, in the letterbox bars for instance
	Invalid    int // scores or boxes that are NaN, infinite, empty or out of range
}
