package media

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/capture"
)

func TestPixelsWithin(t *testing.T) {
	assert.Equal(t, 178956970, pixelsWithin([]byte("MemTotal: 4194304 kB\nMemAvailable:    2097152 kB\nSwapFree: 7 kB\n")))
	assert.Equal(t, capture.DefaultMaxPixels, pixelsWithin([]byte("MemAvailable: 1000 kB\n")), "what a camera may have")
	assert.Equal(t, capture.MaxPixels, pixelsWithin([]byte("MemAvailable: 99999999999 kB\n")))
	assert.Equal(t, capture.MaxPixels, pixelsWithin([]byte("MemTotal: 1000 kB\n")), "unknown")
}
