package media

import (
	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/internal/meminfo"
)

// bytesPerPixel is the memory that an image file takes while it is decoded: a PNG or TIFF is decoded into a buffer of its own first.
const bytesPerPixel = 6

// maxPixels returns the size of the largest image that takes at most half of the free memory, and at least that of a camera. A file of 400
// kB may hold an image that would take the machine's whole memory.
func maxPixels() int {
	return pixelsWithin(meminfo.Read().Available)
}

// pixelsWithin does so for available bytes of memory, -1 if unknown.
func pixelsWithin(available int64) int {
	if available < 0 {
		return capture.MaxPixels
	}
	return int(min(max(available/2/bytesPerPixel, capture.DefaultMaxPixels), capture.MaxPixels))
}
