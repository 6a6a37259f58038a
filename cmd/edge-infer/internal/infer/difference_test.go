package infer

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDifferencesOfWhatIsNoNumber: the same on both sides is none, on one side the largest there is, and all of it can be written as JSON.
func TestDifferencesOfWhatIsNoNumber(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	d := difference("out", []int64{4}, []float32{nan, inf, -inf, 2}, []float32{nan, inf, -inf, 2})
	require.Equal(t, Difference{Name: "out", Shape: []int64{4}}, d)
	for _, seen := range []float32{nan, inf} {
		d = difference("out", []int64{2, 2}, []float32{1, 2, seen, 4}, []float32{1, 2, 3, 4})
		require.EqualValues(t, math.MaxFloat32, d.Max)
		require.Less(t, *d.PSNR, -700.)
		_, err := json.Marshal(d)
		require.NoError(t, err)
	}
	d = difference("out", []int64{2}, []float32{1, 2.5}, []float32{1, 2})
	require.Equal(t, 0.5, d.Max)
	require.Equal(t, 0.25, d.Mean)
	require.InDelta(t, 9.03, *d.PSNR, 0.01) // 20 log10(1 / sqrt(.5^2/2))
}
