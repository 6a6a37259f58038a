package cascade

import (
	"image"
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// region returns a box enlarged by the margin, a share of its sides, on each side and cut to the image. It begins and ends at even pixels,
// because chroma is shared by pairs in some formats. It is empty for a box outside of the image.
func region(b postprocess.Box, margin float32, width, height int) image.Rectangle {
	dx, dy := margin*b.Width(), margin*b.Height()
	left, right := side(b.X1-dx, b.X2+dx, width)
	top, bottom := side(b.Y1-dy, b.Y2+dy, height)
	return image.Rect(left, top, right, bottom)
}

// side returns the even pixels between which an interval lies; both 0 for an empty one.
func side(low, high float32, size int) (from, to int) {
	if !(low < high) || !(high > 0) || !(low < float32(size)) {
		return 0, 0
	}
	from = int(max(low, 0)) &^ 1
	to = min(size, int(math.Ceil(float64(min(high, float32(size)))))+1) &^ 1
	if to-from < 2 {
		return 0, 0
	}
	return from, to
}
