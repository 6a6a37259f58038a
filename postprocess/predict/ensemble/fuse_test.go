package ensemble

import (
	"encoding/json"
	"fmt"
	"image"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func detections(rows [][6]float64) (all []postprocess.Detection) {
	for _, r := range rows {
		box := postprocess.Box{X1: float32(r[0]), Y1: float32(r[1]), X2: float32(r[2]), Y2: float32(r[3])}
		all = append(all, postprocess.Detection{Box: box, Score: float32(r[4]), Class: int(r[5])})
	}
	return all
}

// TestEqualsEnsembleBoxes: testdata/reference.py says what the package of the method's authors makes of random boxes.
func TestEqualsEnsembleBoxes(t *testing.T) {
	text, err := os.ReadFile("testdata/wbf.json")
	require.NoError(t, err)
	var cases []struct {
		Networks  [][][6]float64
		Weights   []float32
		IoU, Skip float32
		Score     string
		Fused     [][6]float64
	}
	require.NoError(t, json.Unmarshal(text, &cases))
	boxes := 0
	for i, c := range cases {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			f := Fuser{IoU: c.IoU, MinScore: c.Skip, Weights: c.Weights, UseMaxScore: c.Score == "max"}
			require.NoError(t, f.Open(len(c.Networks)))
			var looks [][]postprocess.Detection
			for _, network := range c.Networks {
				looks = append(looks, detections(network))
			}
			got, want := f.Fuse(nil, looks), detections(c.Fused)
			require.Len(t, got, len(want))
			for k := range got {
				require.Equal(t, want[k].Class, got[k].Class)
				assert.InDelta(t, want[k].Score, got[k].Score, 1e-6)
				for _, side := range [][2]float32{{want[k].X1, got[k].X1}, {want[k].Y1, got[k].Y1}, {want[k].X2, got[k].X2}, {want[k].Y2, got[k].Y2}} {
					assert.InDelta(t, side[0], side[1], 1e-6)
				}
				boxes++
			}
		})
	}
	require.Greater(t, boxes, 100)
}

func TestVoting(t *testing.T) {
	a := detections([][6]float64{{0, 0, 10, 10, 0.8, 1}, {50, 50, 60, 60, 0.9, 1}})
	b := detections([][6]float64{{0, 0, 10, 12, 0.4, 1}})
	c := detections([][6]float64{{0, 0, 10, 10, 0.6, 2}})
	f := Fuser{Method: MajorityVote}
	require.NoError(t, f.Open(3))
	got := f.Fuse(nil, [][]postprocess.Detection{a, b, c})
	require.Len(t, got, 1, "two of three saw it, and of one class")
	require.InDelta(t, 0.6, got[0].Score, 1e-6)
	require.InDelta(t, (10*0.8+12*0.4)/1.2, got[0].Y2, 1e-5)
	f = Fuser{Method: MajorityVote, Weights: []float32{3, 1, 1}}
	require.NoError(t, f.Open(3))
	require.Len(t, f.Fuse(nil, [][]postprocess.Detection{a, b, c}), 2, "the first one has the majority by itself")
	f = Fuser{Method: NMS, Weights: []float32{1, 1, 0.5}}
	require.NoError(t, f.Open(3))
	got = f.Fuse(nil, [][]postprocess.Detection{a, b, c})
	require.Len(t, got, 3)
	require.Equal(t, float32(10), got[1].Y2, "the best one's box")
	require.InDelta(t, 0.3, got[2].Score, 1e-6)

	for want, f := range map[string]Fuser{
		"2 weights, must be 3":                               {Weights: []float32{1, 2}},
		"weight 0, must be over 0":                           {Weights: []float32{1, 0, 1}},
		`fusion "mean" must be one of [wbf vote nms]`:        {Method: "mean"},
		"fusion at an overlap of 2, must be between 0 and 1": {IoU: 2},
	} {
		require.EqualError(t, f.Open(3), want)
	}
}

// disc is a detection whose mask is where the logit is positive: a band of columns.
func band(from, to int, score float32) postprocess.Detection {
	const side = 8
	f := postprocess.Detection{Box: postprocess.Box{X1: float32(from), X2: float32(to), Y2: side}, Score: score}
	logits := make([]float32, side*side)
	for i := range logits {
		logits[i] = -6
		if x := i % side; x >= from && x < to {
			logits[i] = 6
		}
	}
	f.Detail = &postprocess.Detail{
		Mask:      &postprocess.Mask{Bounds: image.Rect(from, 0, to, side), Width: side, Height: side, Logits: logits, StepX: 1, StepY: 1},
		Keypoints: []postprocess.Keypoint{{X: float32(from), Y: 1, Score: 1}},
	}
	return f
}

// TestDetailsAreFusedToo: a pixel belongs to the object when the looks that saw it say so by their weight.
func TestDetailsAreFusedToo(t *testing.T) {
	f := Fuser{}
	require.NoError(t, f.Open(3))
	one, two, three := band(0, 6, 0.5), band(1, 6, 0.5), band(1, 7, 0.5)
	before := one.Clone()
	got := f.Fuse(nil, [][]postprocess.Detection{{one}, {two}, {three}})
	require.Len(t, got, 1)
	runs := got[0].Detail.Mask.AppendRuns(nil, 8, 8)
	require.Equal(t, postprocess.Runs{8, 40, 16}, runs, "columns 1 to 5, which two of three saw")
	require.InDelta(t, 2.0/3, got[0].Detail.Keypoints[0].X, 1e-5)
	require.Equal(t, before, one, "what the looks gave is as it was")
}

// TestATurnedBoxReachesNoFartherThanItsImage: the box around it is that of what can be seen.
func TestATurnedBoxReachesNoFartherThanItsImage(t *testing.T) {
	f := Fuser{}
	require.NoError(t, f.Open(2))
	turned := postprocess.Detection{Box: postprocess.Box{X1: 0, Y1: 4, X2: 12, Y2: 10}, Score: 0.9}
	turned.Detail = &postprocess.Detail{Oriented: &postprocess.OrientedBox{X: 2, Y: 7, Width: 20, Height: 6}}
	got := f.Fuse(nil, [][]postprocess.Detection{{turned}, {turned.Clone()}})
	require.Len(t, got, 1)
	require.Equal(t, turned.Box, got[0].Box)
	require.Equal(t, turned.Detail.Oriented, got[0].Detail.Oriented)
}

func TestNoAllocationsInFusion(t *testing.T) {
	f := Fuser{}
	require.NoError(t, f.Open(2))
	a := detections([][6]float64{{0, 0, 10, 10, 0.8, 1}, {50, 50, 60, 60, 0.9, 1}, {20, 20, 40, 40, 0.3, 0}})
	looks := [][]postprocess.Detection{a, a}
	room := f.Fuse(nil, looks)
	require.Zero(t, testing.AllocsPerRun(20, func() { room = f.Fuse(room[:0], looks) }))
}
