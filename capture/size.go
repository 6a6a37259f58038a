package capture

import (
	"fmt"

	"github.com/edge-infer/edge-infer/engine"
)

// CheckSize refuses images that have more than maxPixels or that no engine accepts, before memory is allocated for them. A limit of 0 means
// none. The error is an *Error of kind ErrImage without a URI.
func CheckSize(format engine.PixelFormat, width, height, maxPixels int) error {
	bad := func(message, hint string) error {
		return &Error{Op: "read", Kind: ErrImage, Message: fmt.Sprintf("image of %dx%d%s", width, height, message), Hint: hint}
	}
	switch {
	case width < 1 || height < 1 || width > engine.MaxSide || height > engine.MaxSide:
		return bad(fmt.Sprintf(", sides must be 1 to %d", engine.MaxSide), "")
	case maxPixels > 0 && width*height > maxPixels:
		return bad(
			fmt.Sprintf(" has more than %d pixels", maxPixels),
			"lower the camera's resolution or raise max_pixels; a file may take half of the free memory",
		)
	case format == engine.NV12 && (width%2 != 0 || height%2 != 0), format == engine.YUYV && width%2 != 0:
		return bad(" needs even sides in "+format.String(), "")
	}
	return nil
}
