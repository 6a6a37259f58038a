package media

import (
	"fmt"
	"os"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
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
	return pixelsWithin(string(text))
}

// pixelsWithin does so for the contents of /proc/meminfo.
func pixelsWithin(text string) int {
	var kibibytes int
	_, rest, found := strings.Cut(text, "MemAvailable:")
	if _, err := fmt.Sscan(rest, &kibibytes); !found || err != nil {
		return capture.MaxPixels
	}
	return min(max(kibibytes<<10/2/bytesPerPixel, capture.DefaultMaxPixels), capture.MaxPixels)
}
