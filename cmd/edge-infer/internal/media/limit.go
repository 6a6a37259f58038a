package media

import (
	"os"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
)

// bytesPerPixel is the memory that an image file takes while it is decoded: a PNG or TIFF is decoded into a buffer of its own first.
const bytesPerPixel = 6

// maxPixels returns the size of the largest image that takes at most half of the free memory, and at least that of a camera. A file of 400
// kB may hold an image that would take the machine's whole memory.
func maxPixels() int {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return capture.MaxPixels
	}
	return pixelsWithin(text)
}

// pixelsWithin does so for the contents of /proc/meminfo.
func pixelsWithin(text []byte) int {
	available := telemetry.ParseMemory(text).Available
	if available < 0 {
		return capture.MaxPixels
	}
	return int(min(max(available/2/bytesPerPixel, capture.DefaultMaxPixels), capture.MaxPixels))
}
