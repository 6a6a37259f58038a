package scan

import (
	"image"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCombineSumsThePlanes(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	for range 200 {
		size, count := image.Pt(1+random.IntN(40), 1+random.IntN(20)), random.IntN(34)
		x, y := random.IntN(size.X), random.IntN(size.Y)
		part := image.Rect(x, y, x+1+random.IntN(size.X-x), y+1+random.IntN(size.Y-y))
		planes, weights := make([]float32, count*size.X*size.Y), make([]float32, count)
		for i := range planes {
			planes[i] = random.Float32() - 0.5
		}
		for i := range weights {
			weights[i] = random.Float32() - 0.5
		}
		got := make([]float32, part.Dx()*part.Dy())
		WeightedSum(got, planes, weights, size, part)
		for i := range got {
			want := 0.0
			for p, weight := range weights {
				row, column := part.Min.Y+i/part.Dx(), part.Min.X+i%part.Dx()
				want += float64(planes[(p*size.Y+row)*size.X+column]) * float64(weight)
			}
			require.InDelta(t, want, got[i], 1e-5)
		}
	}
}
