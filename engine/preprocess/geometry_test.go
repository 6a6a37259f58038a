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
		g := preprocess.Fit(test.sourceWidth, test.sourceHeight, &engine.ImageInput{Width: test.width, Height: test.height})
		assert.Equal(t, preprocess.Geometry{
			SourceWidth: test.sourceWidth, SourceHeight: test.sourceHeight, Width: test.width, Height: test.height,
			Left: test.left, Top: test.top, InnerWidth: test.innerWidth, InnerHeight: test.innerHeight,
		}, g)
	}
}

// The sides and corners that the projects' own programs compute.
func TestFitByRule(t *testing.T) {
	for _, test := range []struct {
		name                                     string
		preprocess                               engine.Preprocess
		sourceWidth, sourceHeight, width, height int
		left, top, innerWidth, innerHeight       int
	}{
		{"YOLOX", engine.Preprocess{Resize: engine.LetterboxTopLeft}, 1920, 1080, 640, 640, 0, 0, 640, 360},
		{"YOLOX cuts off what Ultralytics rounds", engine.Preprocess{Resize: engine.LetterboxTopLeft}, 1280, 719, 640, 640, 0, 0, 640, 359},
		{"YOLOX upright", engine.Preprocess{Resize: engine.LetterboxTopLeft}, 333, 1000, 416, 416, 0, 0, 138, 416},
		{"YOLOX keeps a pixel", engine.Preprocess{Resize: engine.LetterboxTopLeft}, 32768, 1, 640, 640, 0, 0, 640, 1},
		{"stretch", engine.Preprocess{Resize: engine.Stretch}, 1920, 1080, 300, 200, 0, 0, 300, 200},
		{"torchvision", engine.Preprocess{Resize: engine.Crop, ShorterSide: 256}, 1920, 1080, 224, 224, -116, -16, 455, 256}, // 115.5 to even
		{"torchvision upright", engine.Preprocess{Resize: engine.Crop, ShorterSide: 256}, 480, 640, 224, 224, -16, -58, 256, 341},
		{"torchvision, ties to even", engine.Preprocess{Resize: engine.Crop, ShorterSide: 256}, 1000, 1011, 224, 224, -16, -17, 256, 258},
		{"torchvision pads what is too small", engine.Preprocess{Resize: engine.Crop, ShorterSide: 100}, 300, 200, 224, 224, 37, 62, 150, 100},
		{"Ultralytics classify", engine.Preprocess{Resize: engine.Crop}, 810, 1080, 224, 224, 0, -37, 224, 298},
		{"Ultralytics classify, square", engine.Preprocess{Resize: engine.Crop}, 500, 500, 224, 224, 0, 0, 224, 224},
		{"cover, wide input", engine.Preprocess{Resize: engine.Crop}, 640, 480, 320, 192, 0, -24, 320, 240},
		{"cover, high input", engine.Preprocess{Resize: engine.Crop}, 640, 480, 192, 320, -117, 0, 426, 320},
		{"a strip", engine.Preprocess{Resize: engine.Crop, ShorterSide: 256}, 32768, 1, 224, 224, -16272, -16, 32768, 256},
	} {
		in := &engine.ImageInput{Width: test.width, Height: test.height, Preprocess: test.preprocess}
		assert.Equal(t, preprocess.Geometry{
			SourceWidth: test.sourceWidth, SourceHeight: test.sourceHeight, Width: test.width, Height: test.height,
			Left: test.left, Top: test.top, InnerWidth: test.innerWidth, InnerHeight: test.innerHeight,
		}, preprocess.Fit(test.sourceWidth, test.sourceHeight, in), test.name)
	}
}

// A point of the source that goes through the geometry comes back, whatever the rule; what the input shows lies in the source.
func TestTransformTakesPointsBack(t *testing.T) {
	rules := []engine.Preprocess{
		{},
		{Resize: engine.LetterboxTopLeft},
		{Resize: engine.Stretch},
		{Resize: engine.Crop},
		{Resize: engine.Crop, ShorterSide: 480},
		{Resize: engine.Crop, ShorterSide: 100},
	}
	for _, rule := range rules {
		for _, size := range [][2]int{{1920, 1080}, {333, 1000}, {1, 7}, {416, 640}} {
			in := &engine.ImageInput{Width: 640, Height: 416, Preprocess: rule}
			g := preprocess.Fit(size[0], size[1], in)
			tr := g.Transform()
			for _, share := range []float64{0, .1, .5, .77, 1} {
				x, y := share*float64(size[0]), share*float64(size[1])
				inX := float64(g.Left) + x*float64(g.InnerWidth)/float64(size[0])
				inY := float64(g.Top) + y*float64(g.InnerHeight)/float64(size[1])
				assert.InDelta(t, x, (inX-float64(tr.PadX))/float64(tr.ScaleX), 1e-3, "%v %v", rule, size)
				assert.InDelta(t, y, (inY-float64(tr.PadY))/float64(tr.ScaleY), 1e-3, "%v %v", rule, size)
			}
		}
	}
	assert.Equal(t, engine.Transform{ScaleX: 1, ScaleY: 1}, preprocess.Fit(64, 64, &engine.ImageInput{Width: 64, Height: 64}).Transform())
}
