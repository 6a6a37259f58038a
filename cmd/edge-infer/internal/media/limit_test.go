package media

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/capture"
)

func TestPixelsWithin(t *testing.T) {
	assert.Equal(t, 178956970, pixelsWithin(2097152<<10))
	assert.Equal(t, capture.DefaultMaxPixels, pixelsWithin(1000<<10), "what a camera may have")
	assert.Equal(t, capture.MaxPixels, pixelsWithin(99999999999<<10))
	assert.Equal(t, capture.MaxPixels, pixelsWithin(-1), "unknown")
}
