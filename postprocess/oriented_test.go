package postprocess_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func TestOrientedBoxCornersAndBounds(t *testing.T) {
	o := postprocess.OrientedBox{X: 100, Y: 50, Width: 40, Height: 20}
	require.Equal(t, [4]postprocess.Point{{X: 120, Y: 60}, {X: 120, Y: 40}, {X: 80, Y: 40}, {X: 80, Y: 60}}, o.Corners())
	require.Equal(t, postprocess.Box{X1: 80, Y1: 40, X2: 120, Y2: 60}, o.Bounds())
	o.Angle = math.Pi / 2 // a quarter clockwise: the long side stands
	hull := o.Bounds()
	require.InDelta(t, 90, hull.X1, 1e-3)
	require.InDelta(t, 30, hull.Y1, 1e-3)
	o.Angle = 0.3
	hull = o.Bounds()
	left := math.Inf(1)
	for _, c := range o.Corners() {
		left = min(left, float64(c.X))
	}
	require.InDelta(t, left, hull.X1, 1e-3)
}

func TestProbabilisticIoU(t *testing.T) {
	// ultralytics.utils.metrics.batch_probiou of the same boxes.
	for _, c := range []struct {
		a, b postprocess.OrientedBox
		want float64
	}{
		{
			postprocess.OrientedBox{X: 50, Y: 50, Width: 40, Height: 20, Angle: 0.3},
			postprocess.OrientedBox{X: 50, Y: 50, Width: 40, Height: 20, Angle: 0.3},
			0.99953,
		},
		{
			postprocess.OrientedBox{X: 50, Y: 50, Width: 40, Height: 20, Angle: 0.3},
			postprocess.OrientedBox{X: 55, Y: 48, Width: 44, Height: 18, Angle: 0.5},
			0.70519,
		},
		{
			postprocess.OrientedBox{X: 50, Y: 50, Width: 40, Height: 20},
			postprocess.OrientedBox{X: 60, Y: 70, Width: 20, Height: 60, Angle: 1.2},
			0.09763,
		},
	} {
		a, b := c.a.Gaussian(), c.b.Gaussian()
		require.InDelta(t, c.want, a.ProbIoU(&b), 1e-3)
		require.InDelta(t, a.ProbIoU(&b), b.ProbIoU(&a), 1e-9)
	}
}

func TestOverlapTestEqualsProbIoU(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	box := func() postprocess.OrientedBox {
		return postprocess.OrientedBox{
			X: random.Float32() * 100, Y: random.Float32() * 100, Width: 1 + random.Float32()*80, Height: 1 + random.Float32()*80,
			Angle: (random.Float32() - 0.25) * math.Pi,
		}
	}
	held := 0
	for range 20000 {
		p, q := box(), box()
		a, b := p.Gaussian(), q.Gaussian()
		limit := 0.05 + 0.9*random.Float32()
		if overlap := a.ProbIoU(&b); math.Abs(overlap-float64(limit)) > 1e-6 {
			require.Equal(t, overlap > float64(limit), postprocess.NewOverlapTest(limit).Exceeds(&a, &b), "%v %v %v", p, q, limit)
		}
		if postprocess.NewOverlapTest(limit).Exceeds(&a, &b) {
			held++
		}
	}
	require.Greater(t, held, 1000)
	flat := postprocess.OrientedBox{X: 5, Y: 5}
	a := flat.Gaussian()
	require.False(t, postprocess.NewOverlapTest(0.5).Exceeds(&a, &a), "no area, no overlap")
}
