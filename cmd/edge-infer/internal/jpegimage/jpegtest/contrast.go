// Package jpegtest judges JPEGs in tests.
package jpegtest

import (
	"bytes"
	"image"
	"image/jpeg"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// Noise returns a frame of random pixels, the same ones for each call.
func Noise(format engine.PixelFormat, width, height int) *capture.Frame {
	f := &capture.Frame{Width: width, Height: height, Stride: format.RowBytes(width), Format: format}
	f.Data = make([]byte, f.Stride*format.Rows(height))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range f.Data {
		f.Data[i] = byte(random.Uint32())
	}
	return f
}

// Contrast returns how much neighbouring pixels of a part of an image differ on average, 0 to 255. A mosaic has less than 4, Noise more
// than 15.
func Contrast(t testing.TB, data []byte, part image.Rectangle) float64 {
	t.Helper()
	img, err := jpeg.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	require.True(t, part.In(img.Bounds()), "%v in %v", part, img.Bounds())
	grey := func(x, y int) int {
		r, g, b, _ := img.At(x, y).RGBA()
		return int(r+g+b) / 3 >> 8
	}
	sum, n := 0, 0
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X + 1; x < part.Max.X; x++ {
			d := grey(x, y) - grey(x-1, y)
			sum += max(d, -d)
			n++
		}
	}
	return float64(sum) / float64(n)
}

// Size returns the size of an image.
func Size(t testing.TB, data []byte) image.Rectangle {
	t.Helper()
	config, err := jpeg.DecodeConfig(bytes.NewReader(data))
	require.NoError(t, err)
	return image.Rect(0, 0, config.Width, config.Height)
}
