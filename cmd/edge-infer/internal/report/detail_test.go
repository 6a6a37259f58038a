package report

import (
	"image"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// speckled is a mask of single points that belong to the object and others that do not.
func speckled(width, height int) *postprocess.Mask {
	m := &postprocess.Mask{Bounds: image.Rect(0, 0, width, height), Width: width, Height: height, StepX: 1, StepY: 1}
	for i := range width * height {
		m.Logits = append(m.Logits, float32((i*7+i/width*3)%5)-1.5)
	}
	return m
}

func TestDetailsOfDetections(t *testing.T) {
	square := &postprocess.Mask{Bounds: image.Rect(2, 2, 6, 6), Width: 10, Height: 10, StepX: 1, StepY: 1}
	for range 100 {
		square.Logits = append(square.Logits, 1)
	}
	f := &postprocess.Detection{Detail: &postprocess.Detail{
		Keypoints: []postprocess.Keypoint{{X: 1, Y: 2, Score: 0.5}}, Mask: square,
		Oriented: &postprocess.OrientedBox{X: 10, Y: 20, Width: 4, Height: 2, Angle: math.Pi / 2},
	}}
	var d Details
	got := d.Of(f, 10, 10)
	require.Equal(t, [][3]float64{{1, 2, 0.5}}, got.Keypoints)
	require.InDelta(t, math.Pi/2, got.Angle, 1e-6)
	require.Len(t, got.Corners, 4)
	require.InDelta(t, 9, got.Corners[0][0], 1e-5)
	require.InDelta(t, 22, got.Corners[0][1], 1e-5)
	require.Len(t, got.Mask.Polygons, 1)

	d.Masks = MaskRLE
	d.Begin()
	got = d.Of(f, 10, 10)
	require.Equal(t, "f04600000V1", string(got.Mask.Counts), "pycocotools.mask.encode of the same square")
	d.Masks = MaskOff
	require.Zero(t, d.Of(f, 10, 10).Mask)
	require.Zero(t, d.Of(new(postprocess.Detection), 10, 10))
}

func TestMasksAreBounded(t *testing.T) {
	f := &postprocess.Detection{Detail: &postprocess.Detail{Mask: speckled(300, 200)}}
	d := Details{Masks: MaskRLE}
	counts := d.Of(f, 300, 200).Mask.Counts
	require.LessOrEqual(t, len(counts), maxRunLengthBytes)
	require.Greater(t, len(f.Detail.Mask.AppendRuns(nil, 300, 200)), 4*maxRunLengthBytes, "it would be longer")
	d.Exact = true
	want := f.Detail.Mask.AppendRuns(nil, 300, 200).AppendCounts(nil)
	require.Equal(t, string(want), string(d.Of(f, 300, 200).Mask.Counts), "no pixel is lost without a broker")
	d.Masks = MaskPolygon
	corners := 0
	for _, polygon := range d.Of(f, 300, 200).Mask.Polygons {
		corners += len(polygon)
	}
	require.LessOrEqual(t, corners, 128)
}
