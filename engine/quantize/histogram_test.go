package quantize

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func normal(count int, deviation float64, seed uint64) []float32 {
	random := rand.New(rand.NewPCG(seed, 0))
	values := make([]float32, count)
	for i := range values {
		values[i] = float32(random.NormFloat64() * deviation)
	}
	return values
}

func TestHistogramDoesNotDependOnOrder(t *testing.T) {
	values := append(normal(20000, 1, 1), 1e-30, 0, 300, -1e-9)
	forward, backward := NewHistogram(), NewHistogram()
	require.NoError(t, forward.Add(values))
	for i := len(values); i > 0; i -= 4 {
		require.NoError(t, backward.Add(values[i-4:i]))
	}
	assert.Equal(t, forward, backward)
	total := uint64(0)
	for _, c := range forward.counts {
		total += c
	}
	assert.EqualValues(t, len(values), total)
	r := forward.Range(DefaultPercentile)
	assert.EqualValues(t, 300, r.Max)
	assert.EqualValues(t, 300, r.Limits[MinMax])
	assert.Less(t, r.Limits[Percentile], float32(6))
}

func TestHistogramKeepsEdges(t *testing.T) {
	for _, v := range []float32{0, 1e-45, 1e-38, 1, 4095, 4096, math.MaxFloat32} {
		h := NewHistogram()
		require.NoError(t, h.Add([]float32{v, -v}))
		r := h.Range(DefaultPercentile)
		for _, method := range Methods() {
			assert.LessOrEqual(t, r.Limits[method], v, "%v %s", v, method)
			assert.Positive(t, Scale(r.Limits[method]))
		}
	}
	assert.Empty(t, NewHistogram().Range(99).Limits)
}

func TestHistogramRejectsNaN(t *testing.T) {
	h := NewHistogram()
	assert.EqualError(t, h.Add([]float32{1, float32(math.NaN())}), "value 1 is NaN")
	assert.EqualError(t, h.Add([]float32{float32(math.Inf(-1))}), "value 0 is -Inf")
	assert.Equal(t, NewHistogram(), h)
}

// loss returns the mean squared error of quantizing with a limit.
func loss(values []float32, limit float32) float64 {
	scale, sum := float64(Scale(limit)), 0.0
	for _, v := range values {
		q := min(max(math.RoundToEven(float64(v)/scale), -127), 127)
		d := float64(v) - q*scale
		sum += d * d
	}
	return sum / float64(len(values))
}

// Each method returns the limit that its name promises, for values with a few far outliers.
func TestMethods(t *testing.T) {
	values := normal(200000, 1, 2)
	for i := range 20 {
		values[i] = float32(8 + i%5)
	}
	h := NewHistogram()
	require.NoError(t, h.Add(values))
	limits := h.Range(DefaultPercentile).Limits
	assert.EqualValues(t, 12, limits[MinMax])
	beyond := 0
	for _, v := range values {
		if float32(math.Abs(float64(v))) > limits[Percentile] {
			beyond++
		}
	}
	assert.LessOrEqual(t, beyond, len(values)/10000)
	assert.GreaterOrEqual(t, beyond, len(values)/20000)
	best := math.Inf(1)
	for limit := float32(1); limit <= 12; limit += 0.05 {
		best = min(best, loss(values, limit))
	}
	assert.LessOrEqual(t, loss(values, limits[MSE]), best*1.01)
	assert.Less(t, loss(values, limits[MSE]), loss(values, limits[MinMax]))
	// The divergence clips the tail of a normal distribution and never most of it.
	assert.Greater(t, limits[Entropy], float32(2))
	assert.Less(t, limits[Entropy], float32(9))
}

// A ReLU leaves half of the values at exactly 0; they must not pull the limit to 0.
func TestEntropyAfterReLU(t *testing.T) {
	values := normal(100000, 2, 3)
	for i := range values {
		values[i] = max(values[i], 0)
	}
	h := NewHistogram()
	require.NoError(t, h.Add(values))
	assert.Greater(t, h.Range(DefaultPercentile).Limits[Entropy], float32(4))
}
