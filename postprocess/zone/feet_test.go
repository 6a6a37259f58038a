package zone

import (
	"image"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

var person = postprocess.NewSkeleton(postprocess.PersonKeypoints())

func TestFeet(t *testing.T) {
	a := &Analytics{Width: 200, Height: 100}
	box := postprocess.Box{X1: 20, Y1: 10, X2: 60, Y2: 90}
	points := make([]postprocess.Keypoint, 17)
	both := func(left, right float32) *postprocess.Detail {
		own := append([]postprocess.Keypoint(nil), points...)
		own[leftAnkle], own[rightAnkle] = postprocess.Keypoint{X: 30, Y: 80, Score: left}, postprocess.Keypoint{X: 40, Y: 70, Score: right}
		return &postprocess.Detail{Keypoints: own, Skeleton: person}
	}
	// A mask whose pixels are those left of column 30 and above row 50.
	mask := &postprocess.Mask{
		Bounds: image.Rect(20, 10, 60, 90), Width: 200, Height: 100, StepX: 1, StepY: 1, Logits: make([]float32, 200*100),
	}
	for i := range mask.Logits {
		if mask.Logits[i] = -1; i%200 < 30 && i/200 < 50 {
			mask.Logits[i] = 1
		}
	}
	for name, c := range map[string]struct {
		detail *postprocess.Detail
		want   Point
	}{
		"nothing said":     {nil, Point{40, 90}},
		"both ankles":      {both(0.9, 0.9), Point{35, 75}},
		"one ankle":        {both(0.1, 0.9), Point{40, 70}},
		"no ankle":         {both(0.1, 0.1), Point{40, 90}},
		"another skeleton": {&postprocess.Detail{Keypoints: both(0.9, 0.9).Keypoints}, Point{40, 90}},
		"mask":             {&postprocess.Detail{Mask: mask}, Point{25, 50}},
		"empty mask":       {&postprocess.Detail{Mask: &postprocess.Mask{}}, Point{40, 90}},
	} {
		require.Equal(t, c.want, a.feet(&postprocess.Detection{Box: box, Detail: c.detail}), name)
	}
}

func TestZoneWithFeetAnchor(t *testing.T) {
	z := field // columns 400 to 600 of 1000
	z.Anchor = Feet
	a := open(t, Config{Zones: []Zone{z}})
	inside := func(x float32) int {
		track := seen(1, 380, 200, 0) // the box is left of the zone
		points := make([]postprocess.Keypoint, 17)
		points[leftAnkle] = postprocess.Keypoint{X: x, Y: 190, Score: 0.9}
		track.Detail = &postprocess.Detail{Keypoints: points, Skeleton: person}
		for frame := range 10 {
			a.Update(uint64(frame), at(frame), []postprocess.Track{track})
		}
		require.Nil(t, a.objects[0].Detail, "it belongs to the frame")
		return a.Zone(0).Occupied[0]
	}
	require.Equal(t, 1, inside(420))
	require.Equal(t, 0, inside(390))
}
