package pipeline

import (
	"context"
	"image"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

func TestRegionOfAImage(t *testing.T) {
	for _, c := range []struct {
		region        Region
		width, height int
		want          image.Rectangle
	}{
		{Region{}, 1920, 1080, image.Rect(0, 0, 1920, 1080)},
		{Region{0.5, 0.5, 0.5, 0.5}, 1920, 1080, image.Rect(960, 540, 1920, 1080)},
		{Region{0.25, 0.3, 0.1, 0.1}, 641, 479, image.Rect(160, 144, 224, 192)},
		{Region{0.999, 0.999, 0.001, 0.001}, 64, 64, image.Rect(62, 62, 64, 64)},
		{Region{0, 0, 1, 1}, 1, 1, image.Rect(0, 0, 1, 1)},
	} {
		assert.Equal(t, c.want, c.region.of(c.width, c.height), c)
	}
}

// pattern is an image whose luma says where it is, with a stride.
func pattern(format engine.PixelFormat) engine.Image {
	im := engine.Image{Width: 32, Height: 16, Format: format, Stride: format.RowBytes(32) + 10}
	im.Data = make([]byte, im.Stride*format.Rows(16))
	for i := range im.Data {
		im.Data[i] = byte(i * 31 >> 3)
	}
	return im
}

func TestACutIsTheSamePixels(t *testing.T) {
	part := image.Rect(6, 4, 20, 14)
	for _, format := range []engine.PixelFormat{engine.BGR, engine.BGRx, engine.NV12, engine.YUYV, engine.GRAY8} {
		whole := pattern(format)
		var memory []byte
		got := cut(whole, part, &memory)
		require.NoError(t, got.Check(), format)
		require.Equal(t, []int{14, 10}, []int{got.Width, got.Height})
		bytes := format.RowBytes(2) / 2
		for y := range got.Height {
			wanted := whole.Data[(y+4)*whole.Stride+6*bytes:][:14*bytes]
			assert.Equal(t, wanted, got.Data[y*got.Stride:][:14*bytes], "%v row %d", format, y)
		}
		if format != engine.NV12 {
			assert.Same(t, &whole.Data[4*whole.Stride+6*bytes], &got.Data[0], "%v shares the frame's memory", format)
			assert.Empty(t, memory)
			continue
		}
		for y := range got.Height / 2 {
			wanted := whole.Data[(16+2+y)*whole.Stride+6:][:14]
			assert.Equal(t, wanted, got.Data[(got.Height+y)*got.Stride:][:14], "colours of row %d", y)
		}
		assert.Zero(t, testing.AllocsPerRun(10, func() { cut(whole, part, &memory) }))
	}
}

func TestDetectionsOfARegionAreOnTheImage(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	var seen record
	p := open(t, newSlowEngine(0, 1), notify, []Sink{&seen}, Camera{
		Name: "a", Source: camera, Lossless: true, Region: Region{X: 0.5, Y: 0.25, Width: 0.5, Height: 0.5},
	})
	camera.put(t)
	require.True(t, p.gather(&p.requests[0]))
	require.Equal(t, []int{32, 32, 64}, []int{p.requests[0].images[0].Width, p.requests[0].images[0].Height, p.requests[0].images[0].Stride})
	p.submit(0)
	p.finish(0)
	require.Len(t, seen.boxes, 1)
	// The stand-in finds 0, 20 to 255.5, 50 in each image; the decoder keeps it within the 32 by 32 pixels that it was given.
	require.Equal(t, postprocess.Box{X1: 32, Y1: 36, X2: 64, Y2: 48}, seen.boxes[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, p.Run(ctx, nil))
}
