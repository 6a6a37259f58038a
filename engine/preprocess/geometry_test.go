package preprocess_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

func TestFit(t *testing.T) {
	for _, test := range []struct{ sourceWidth, sourceHeight, width, height, left, top, innerWidth, innerHeight int }{
		{1920, 1080, 640, 640, 0, 140, 640, 360},
		{1080, 1920, 640, 640, 140, 0, 360, 640},
		{640, 640, 640, 640, 0, 0, 640, 640},
		{320, 240, 640, 640, 0, 80, 640, 480},
		{1280, 719, 640, 640, 0, 140, 640, 360}, // 359.5 rounds to even
		{1000, 563, 640, 640, 0, 140, 640, 360},
		{999, 333, 640, 640, 0, 213, 640, 213}, // the odd row goes below
		{810, 1080, 640, 640, 80, 0, 480, 640},
		{1, 1, 640, 480, 80, 0, 480, 480},
		{32768, 1, 640, 640, 0, 319, 640, 1},
		{1, 32768, 640, 640, 319, 0, 1, 640},
	} {
		g := preprocess.Fit(test.sourceWidth, test.sourceHeight, test.width, test.height)
		assert.Equal(t, preprocess.Geometry{
			SourceWidth: test.sourceWidth, SourceHeight: test.sourceHeight, Width: test.width, Height: test.height,
			Left: test.left, Top: test.top, InnerWidth: test.innerWidth, InnerHeight: test.innerHeight,
		}, g)
	}
}

func TestTransformTakesCornersBack(t *testing.T) {
	for _, size := range [][2]int{{1920, 1080}, {333, 1000}, {1, 7}} {
		g := preprocess.Fit(size[0], size[1], 640, 416)
		tr := g.Transform()
		assert.InDelta(t, 0, (float32(g.Left)-tr.PadX)/tr.ScaleX, 1e-3)
		assert.InDelta(t, size[0], (float32(g.Left+g.InnerWidth)-tr.PadX)/tr.ScaleX, 1e-3)
		assert.InDelta(t, size[1], (float32(g.Top+g.InnerHeight)-tr.PadY)/tr.ScaleY, 1e-3)
	}
	assert.Equal(t, engine.Transform{ScaleX: 1, ScaleY: 1}, preprocess.Fit(64, 64, 64, 64).Transform())
}
