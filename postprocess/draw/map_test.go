package draw

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func TestSegmentationMap(t *testing.T) {
	img := Image{Data: make([]byte, 64*400*3), Width: 64, Height: 400, Stride: 64 * 3}
	m := &postprocess.DenseMap{Width: 2, Height: 1, StepX: 1. / 32, StepY: 1. / 400, X: -.484375, Classes: []uint8{postprocess.NoClass, 3}}
	p := Painter{Labels: []string{"a", "b", "c", "road"}}
	var reading postprocess.PixelStats
	reading.Measure(m, m.AppendSpans(nil))
	require.NoError(t, p.Map(img, m, &reading))
	at := func(x, y int) []byte { return img.Data[y*img.Stride+3*x:][:3] }
	assert.Equal(t, []byte{0, 0, 0}, at(31, 300))
	c := Colour(3)
	half := func(v uint8) byte { return byte((uint32(v)*mapAlpha + 127) / 255) }
	assert.Equal(t, []byte{half(c.B), half(c.G), half(c.R)}, at(32, 300))
	assert.Equal(t, []byte{c.B, c.G, c.R}, at(0, 1), "the ground of the legend")
	again := bytes.Clone(img.Data)
	m.X += 100 // a part of the image that the network was not shown
	clear(img.Data)
	require.NoError(t, p.Map(img, m, &postprocess.PixelStats{}))
	assert.Equal(t, make([]byte, len(again)), img.Data)
}

func TestDepthMap(t *testing.T) {
	img := Image{Data: make([]byte, 90*400*3), Width: 90, Height: 400, Stride: 90 * 3}
	nan := float32(math.NaN())
	m := &postprocess.DenseMap{Width: 3, Height: 1, StepX: 1. / 30, StepY: 1. / 400, X: -.4833, Depths: []float32{2, nan, 7}}
	var p Painter
	var reading postprocess.PixelStats
	reading.Measure(m, m.AppendSpans(nil))
	require.NoError(t, p.Map(img, m, &reading))
	at := func(x int) [3]byte { return [3]byte(img.Data[300*img.Stride+3*x:]) }
	assert.Equal(t, [3]byte{}, at(45))
	near, far := at(10), at(80)
	light := func(c [3]byte) int { return int(c[0]) + int(c[1]) + int(c[2]) }
	assert.Positive(t, light(near))
	assert.Less(t, 2*light(near), light(far))
	require.Error(t, p.Map(Image{Data: img.Data, Width: 900, Height: 400}, m, &reading))
	require.NoError(t, p.Map(img, m, &postprocess.PixelStats{}), "depths all out of bounds")
}

// Along the ramp each colour is brighter than the one before.
func TestColormapLightnessIncreases(t *testing.T) {
	before := -1.
	for i := range 256 {
		c := Colormap(float32(i) / 255)
		linear := func(v uint8) float64 { return math.Pow(float64(v)/255, 2.2) }
		bright := .2126*linear(c.R) + .7152*linear(c.G) + .0722*linear(c.B)
		require.Greater(t, bright, before-.002, i)
		before = bright
	}
	assert.Greater(t, before, .6)
}
