package cascade

import (
	"image"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

func TestRegion(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		box    postprocess.Box
		margin float32
		want   image.Rectangle
	}{
		{postprocess.Box{X1: 10, Y1: 20, X2: 30, Y2: 40}, 0, image.Rect(10, 20, 30, 40)},
		{postprocess.Box{X1: 11, Y1: 21, X2: 30.5, Y2: 39.1}, 0, image.Rect(10, 20, 32, 40)},
		{postprocess.Box{X1: 20, Y1: 20, X2: 40, Y2: 30}, 0.5, image.Rect(10, 14, 50, 36)},
		{postprocess.Box{X1: -50, Y1: -5, X2: 500, Y2: 500}, 0, image.Rect(0, 0, 100, 50)},
		{postprocess.Box{X1: 99, Y1: 49, X2: 101, Y2: 51}, 0, image.Rect(98, 48, 100, 50)},
		{postprocess.Box{X1: 100, Y1: 10, X2: 120, Y2: 20}, 0, image.Rectangle{}},
		{postprocess.Box{X1: -20, Y1: 10, X2: 0, Y2: 20}, 0, image.Rectangle{}},
		{postprocess.Box{X1: 30, Y1: 10, X2: 20, Y2: 20}, 0, image.Rectangle{}},
		{postprocess.Box{X1: nan, Y1: 10, X2: 20, Y2: 20}, 0, image.Rectangle{}},
		{postprocess.Box{X1: -inf, Y1: 10, X2: inf, Y2: 20}, 0, image.Rectangle{}},
		{postprocess.Box{X1: -1e30, Y1: 10, X2: 1e30, Y2: 20}, 1, image.Rect(0, 0, 100, 30)},
	} {
		got := region(c.box, c.margin, 100, 50)
		if c.want.Empty() {
			require.True(t, got.Empty(), "%v gave %v", c.box, got)
			continue
		}
		require.Equal(t, c.want, got, "%v", c.box)
	}
}

// FuzzRegion: whatever a network says, what is cut out is an image that an engine takes, or nothing.
func FuzzRegion(f *testing.F) {
	f.Add(float32(1), float32(2), float32(30), float32(40), float32(0.2), uint8(64), uint8(48), uint8(2))
	f.Add(float32(-1e30), float32(-1e30), float32(1e30), float32(1e30), float32(1), uint8(3), uint8(2), uint8(0))
	f.Fuzz(func(t *testing.T, x1, y1, x2, y2, margin float32, w, h, kind uint8) {
		format := engine.PixelFormat(kind % 5)
		width, height := 2*(int(w)/2+1), 2*(int(h)/2+1)
		stride := format.RowBytes(width) + 3
		img := engine.Image{
			Data: make([]byte, stride*format.Rows(height)), Width: width, Height: height, Stride: stride, Format: format,
		}
		part := region(postprocess.Box{X1: x1, Y1: y1, X2: x2, Y2: y2}, margin, width, height)
		if part.Empty() {
			return
		}
		if !part.In(image.Rect(0, 0, width, height)) {
			t.Fatalf("%v lies outside of %dx%d", part, width, height)
		}
		crop, err := img.CopyPart(make([]byte, img.PartBytes(part)), part)
		require.NoError(t, err)
		if err := crop.Check(); err != nil || len(crop.Data) != img.PartBytes(part) {
			t.Fatalf("%v of %d bytes: %v", part, len(crop.Data), err)
		}
	})
}
