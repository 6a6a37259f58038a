package scan

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpectIsTheMeanOfTheSoftmax(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	for _, spread := range []float64{0, 1, 10, 200, 1e6} {
		logits, got := make([]float32, 5*DistanceBins), make([]float32, 5)
		for i := range logits {
			logits[i] = float32(spread * random.NormFloat64())
		}
		DecodeDistances(got, logits)
		for side := range got {
			row := logits[side*DistanceBins:][:DistanceBins]
			highest := float64(row[0])
			for _, v := range row {
				highest = max(highest, float64(v))
			}
			sum, weighted := 0., 0.
			for distance, v := range row {
				share := math.Exp(float64(v) - highest)
				sum, weighted = sum+share, weighted+share*float64(distance)
			}
			require.InDelta(t, weighted/sum, got[side], 1e-5)
		}
	}
	infinite, nan := float32(math.Inf(1)), float32(math.NaN())
	rows := []float32{
		0, 0, nan, 0, 0, 0, 0, 0,
		nan, 0, 0, 0, 0, 0, 0, 0,
		infinite, 0, 0, 0, 0, 0, 0, 0,
		-infinite, 5, -infinite, -infinite, -infinite, -infinite, -infinite, -infinite,
	}
	got := make([]float32, 4)
	DecodeDistances(got, rows)
	for _, v := range got[:3] {
		require.True(t, v != v, "%v", got)
	}
	require.InDelta(t, 1, got[3], 1e-6)
}
