package zone

import (
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// star is a polygon around a point, hollow in places, whose edges do not cross.
func star(random *rand.Rand, x, y, most float64) (outline polygon) {
	corners := 3 + random.IntN(12)
	for i := range corners {
		turn, reach := 2*math.Pi*float64(i)/float64(corners), most*(0.1+0.9*random.Float64())
		outline = append(outline, Point{x + reach*math.Cos(turn), y + reach*math.Sin(turn)})
	}
	return outline
}

// TestSharesEqualCountedPoints: of boxes and masks, whatever the outline is.
func TestSharesEqualCountedPoints(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	a := &Analytics{Width: 60, Height: 40}
	cut := 0
	for range 300 {
		outline := star(random, 60*random.Float64(), 40*random.Float64(), 5+40*random.Float64())
		x, y := 50*random.Float32(), 30*random.Float32()
		box := postprocess.Box{X1: x, Y1: y, X2: x + 2 + 20*random.Float32(), Y2: y + 2 + 20*random.Float32()}
		const steps = 80
		inside := 0
		for i := range steps {
			for j := range steps {
				p := Point{
					float64(box.X1) + (float64(i)+0.5)/steps*float64(box.Width()), float64(box.Y1) + (float64(j)+0.5)/steps*float64(box.Height()),
				}
				if outline.contains(p) {
					inside++
				}
			}
		}
		want := float64(inside) / steps / steps
		require.InDelta(t, want, a.boxShare(box, outline), 0.02, "%v in %v", box, outline)
		if want > 0 && want < 1 {
			cut++
		}
		mask := &postprocess.Mask{
			Bounds: image.Rect(0, 0, 60, 40), Width: 60, Height: 40, StepX: 1, StepY: 1, Logits: make([]float32, 60*40),
		}
		all, both := 0, 0
		for i := range mask.Logits {
			if mask.Logits[i] = -1; random.IntN(3) == 0 {
				mask.Logits[i] = 1
				all++
				if outline.contains(Point{float64(i%60) + 0.5, float64(i/60) + 0.5}) {
					both++
				}
			}
		}
		share, said := a.maskShare(mask, outline)
		require.True(t, said)
		require.InDelta(t, float64(both)/float64(all), share, 1e-9)
	}
	require.Greater(t, cut, 50)
	_, said := a.maskShare(&postprocess.Mask{}, polygon{{0, 0}, {9, 0}, {0, 9}})
	require.False(t, said)
	nan := float32(math.NaN())
	require.Zero(t, a.boxShare(postprocess.Box{X1: nan, X2: 9, Y2: 9}, polygon{{0, 0}, {9, 0}, {0, 9}}))
}

// TestZoneAnchors: points of the box, keypoints by their names, and shares of box and mask.
func TestZoneAnchors(t *testing.T) {
	within := func(anchor Anchor, share float64, track *postprocess.Track) bool {
		z := field // columns 400 to 600 of 1000
		z.Anchor, z.Share = anchor, share
		a := &Analytics{Config: Config{Zones: []Zone{z}}, Labels: labels, Keypoints: []string{"hook"}, Width: 1000, Height: 500}
		require.NoError(t, a.Open())
		for frame := range 10 {
			a.Update(uint64(frame), at(frame), []postprocess.Track{*track})
		}
		require.Nil(t, a.objects[0].Detail, "it belongs to the frame")
		return a.Zone(0).Occupied[0] == 1
	}
	track := seen(1, 380, 200, 0)
	track.Box = postprocess.Box{X1: 340, Y1: 100, X2: 440, Y2: 200} // four tenths of it are in the zone, its middle is not
	require.False(t, within(Bottom, 0, &track))
	require.True(t, within(BoxArea, 0, &track))
	require.True(t, within(BoxArea, 0.35, &track))
	require.False(t, within(BoxArea, 0.45, &track))
	require.True(t, within(MaskArea, 0.35, &track), "without a mask it is the box")

	points := make([]postprocess.Keypoint, 17)
	wrist := slices.Index(postprocess.PersonKeypoints(), "right_wrist")
	points[wrist] = postprocess.Keypoint{X: 420, Y: 150, Score: 0.9}
	track.Detail = &postprocess.Detail{Keypoints: points, Skeleton: person}
	require.True(t, within("right_wrist", 0, &track))
	require.False(t, within("left_wrist", 0, &track), "it is not seen: the foot of the box is not in the zone")
	points[wrist].Score = 0.2
	require.False(t, within("right_wrist", 0, &track))

	hook := postprocess.NewSkeleton([]string{"top", "hook"})
	k := postprocess.Keypoint{X: 420, Y: 150, Score: 0.9}
	track.Detail = &postprocess.Detail{Keypoints: []postprocess.Keypoint{k, k}, Skeleton: hook}
	require.True(t, within("hook", 0, &track))
	require.False(t, within(Top, 0, &track), "anchors of boxes stay what they are, whatever points are called")
	require.False(t, within("right_wrist", 0, &track), "it has none: the foot of the box is not in the zone")

	mask := &postprocess.Mask{ // columns 340 to 410 of the box
		Bounds: image.Rect(340, 100, 440, 200), Width: 100, Height: 100, X: -340, Y: -100, StepX: 1, StepY: 1, Logits: make([]float32, 100*100),
	}
	for i := range mask.Logits {
		if mask.Logits[i] = -1; i%100 < 70 {
			mask.Logits[i] = 1
		}
	}
	track.Detail = &postprocess.Detail{Mask: mask}
	require.True(t, within(MaskArea, 0.1, &track))
	require.False(t, within(MaskArea, 0.2, &track), "a tenth of it, and a little more, is in the zone")
	require.True(t, within(BoxArea, 0.35, &track))
}

func TestAnchorErrors(t *testing.T) {
	labels := []string{"a"}
	for want, c := range map[string]Config{
		`zone "field": share 0.5 needs the anchor box or mask`: {Width: 1000, Height: 1000, Zones: []Zone{func() Zone {
			z := field
			z.Share = 0.5
			return z
		}()}},
		`zone "field": share 2 is not between 0 and 1`: {Width: 1000, Height: 1000, Zones: []Zone{func() Zone {
			z := field
			z.Anchor, z.Share = BoxArea, 2
			return z
		}()}},
		`line "door": anchor "box" is not bottom, centre, top, feet or a keypoint like hook, top`: {
			Lines: []Line{{Name: "door", From: Point{0, 0}, To: Point{1, 1}, Anchor: BoxArea}},
		},
		`line "door": anchor "jib" is not bottom, centre, top, feet or a keypoint like hook, top`: {
			Lines: []Line{{Name: "door", From: Point{0, 0}, To: Point{1, 1}, Anchor: "jib"}},
		},
	} {
		require.EqualError(t, c.Validate(Names{Labels: labels, Keypoints: []string{"hook", "top"}}), want)
	}
}
