package draw

import (
	"image"
	"image/color"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

var black = color.RGBA{A: 255}

func TestMarksPaintMasks(t *testing.T) {
	img := blank(320, 240)
	one := mark(40, 60, 200, 180, 3)
	// The left half of the box belongs to the object.
	one.Detail = &postprocess.Detail{Mask: &postprocess.Mask{
		Bounds: image.Rect(40, 60, 200, 180), Width: 2, Height: 1, StepX: 1 / 160.0, StepY: 1, X: -39.5 / 160, Logits: []float32{1, -1},
	}}
	painter := &Painter{}
	require.NoError(t, painter.Marks(img, []Mark{one}))
	assert.NotEqual(t, black, at(img, 80, 120))
	assert.NotEqual(t, Colour(3), at(img, 80, 120), "what is under it shows through")
	assert.Equal(t, black, at(img, 160, 120))
	assert.Equal(t, Colour(3), at(img, 199, 120), "the box is there too")
}

func TestMarksPaintOrientedBoxes(t *testing.T) {
	img := blank(320, 240)
	o := postprocess.OrientedBox{X: 160, Y: 120, Width: 120, Height: 40, Angle: math.Pi / 4}
	one := mark(0, 0, 0, 0, 3)
	one.Box, one.Detail = o.Bounds(), &postprocess.Detail{Oriented: &o}
	require.NoError(t, new(Painter).Marks(img, []Mark{one}))
	for _, corner := range o.Corners() {
		assert.Equal(t, Colour(3), at(img, int(corner.X), int(corner.Y)))
	}
	assert.Equal(t, black, at(img, int(one.X2)-1, int(one.Y1)+1), "the hull is not painted")
	assert.Equal(t, black, at(img, 160, 120))
}

func TestMarksPaintPeople(t *testing.T) {
	points := make([]postprocess.Keypoint, 17)
	points[5] = postprocess.Keypoint{X: 100, Y: 100, Score: 0.9} // left shoulder
	points[7] = postprocess.Keypoint{X: 160, Y: 160, Score: 0.9} // left elbow
	points[9] = postprocess.Keypoint{X: 220, Y: 100, Score: 0.2} // left wrist, out of sight
	one := mark(60, 60, 300, 220, 0)
	one.Detail = &postprocess.Detail{Keypoints: points, Skeleton: postprocess.NewSkeleton(postprocess.PersonKeypoints())}
	img := blank(320, 240)
	require.NoError(t, new(Painter).Marks(img, []Mark{one}))
	assert.Equal(t, Colour(0), at(img, 130, 130), "the upper arm")
	assert.Equal(t, Colour(0), at(img, 100, 100))
	assert.Equal(t, black, at(img, 190, 130), "no forearm without a wrist")
	assert.Equal(t, black, at(img, 220, 100))

	for why, skeleton := range map[string]*postprocess.Skeleton{
		"points without names are not joined":            nil,
		"17 points of something else are not a person's": postprocess.NewSkeleton(strings.Split("abcdefghijklmnopq", "")),
	} {
		one.Detail = &postprocess.Detail{Keypoints: points, Skeleton: skeleton}
		img = blank(320, 240)
		require.NoError(t, new(Painter).Marks(img, []Mark{one}))
		assert.Equal(t, black, at(img, 130, 130), why)
	}
}

func TestMarksNameKeypoints(t *testing.T) {
	painted := func(high float32, names ...string) (count int) {
		one := mark(60, 60, 300, 60+high, 0)
		one.Detail = &postprocess.Detail{Keypoints: []postprocess.Keypoint{{X: 100, Y: 100, Score: 0.9}, {X: 200, Y: 100, Score: 0.2}}}
		if names != nil {
			one.Detail.Skeleton = postprocess.NewSkeleton(names)
		}
		img := blank(320, 240)
		require.NoError(t, new(Painter).Marks(img, []Mark{one}))
		for y := 90; y < 112; y++ {
			for x := 110; x < 290; x++ {
				if at(img, x, y) == Colour(0) {
					count++
				}
			}
		}
		return count
	}
	require.Zero(t, painted(170))
	hook := painted(170, "hook", "boom")
	require.Positive(t, hook, "the ground of the letters")
	require.Equal(t, hook, painted(170, "hook", "a boom that nobody sees"))
	require.Greater(t, painted(170, "hook block", "boom"), hook)
	require.Zero(t, painted(60, "hook", "boom"), "a small object has no room for names")
}

func TestPaintingDetailsAllocatesNothing(t *testing.T) {
	img := blank(320, 240)
	one := mark(40, 60, 200, 180, 3)
	one.Detail = &postprocess.Detail{
		Mask:      &postprocess.Mask{Bounds: image.Rect(40, 60, 200, 180), Width: 1, Height: 1, StepX: 1, StepY: 1, Logits: []float32{1}},
		Keypoints: []postprocess.Keypoint{{X: 90, Y: 90, Score: 1}}, Skeleton: postprocess.NewSkeleton([]string{"hook"}),
		Oriented: &postprocess.OrientedBox{X: 90, Y: 90, Width: 30, Height: 20, Angle: 1},
	}
	painter, marks := &Painter{}, []Mark{one}
	require.NoError(t, painter.Marks(img, marks))
	require.Zero(t, testing.AllocsPerRun(5, func() { _ = painter.Marks(img, marks) }))
}
