package head

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExponent(t *testing.T) {
	for v := float32(-100); v < 100; v += 0.00717 {
		want := math.Exp(float64(v))
		got := float64(exp(v))
		if want > math.MaxFloat32 {
			require.True(t, math.IsInf(got, 1), v)
			continue
		}
		require.InDelta(t, 1, got/max(want, 1e-45), 4e-7+1e-45/want, "%v", v)
	}
	require.True(t, math.IsNaN(float64(exp(float32(math.NaN())))))
	require.Zero(t, exp(float32(math.Inf(-1))))
	require.True(t, math.IsInf(float64(exp(float32(math.Inf(1)))), 1))
}
