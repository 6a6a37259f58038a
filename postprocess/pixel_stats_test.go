package postprocess

import (
	"image"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPixelStatsOfClasses(t *testing.T) {
	m := &DenseMap{Width: 4, Height: 2, Classes: []uint8{0, 0, 1, 2, 0, NoClass, 1, 254}}
	var r PixelStats
	r.Measure(m, m.AppendSpans(nil))
	assert.InDelta(t, .375, r.Shares[0], 1e-6)
	assert.InDelta(t, .25, r.Shares[1], 1e-6)
	assert.InDelta(t, .125, r.Shares[254], 1e-6)
	r.Measure(m, []Span{{1, 3}, {4, 6}}) // what has no class is area too
	assert.Equal(t, float32(.5), r.Shares[0])
	assert.Equal(t, float32(.25), r.Shares[1])
	assert.Zero(t, r.Shares[254])
	r.Measure(m, nil)
	assert.Equal(t, [NoClass]float32{}, r.Shares)
}

// The least, median and largest depth are those of the sorted numbers, whatever these are.
func TestPixelStatsOfDepths(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var r PixelStats
	for _, count := range []int{1, 2, 3, 10, 1001, 4096} {
		for kind := range 4 {
			m := &DenseMap{Width: count, Height: 1, Depths: make([]float32, count)}
			for i := range m.Depths {
				switch kind {
				case 0:
					m.Depths[i] = random.Float32()*20 - 10
				case 1:
					m.Depths[i] = float32(random.IntN(3))
				case 2:
					m.Depths[i] = float32(math.Exp(80*random.Float64() - 40))
				default:
					m.Depths[i] = -3
				}
			}
			sorted := slices.Clone(m.Depths)
			slices.Sort(sorted)
			m.Depths = append(m.Depths, float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)))
			m.Width += 3
			r.Measure(m, m.AppendSpans(nil))
			require.Equal(t, count, r.Known)
			require.Equal(t, sorted[0], r.Low)
			require.Equal(t, sorted[(count-1)/2], r.Median)
			require.Equal(t, sorted[count-1], r.High)
		}
	}
	m := &DenseMap{Width: 2, Height: 1, Depths: []float32{float32(math.NaN()), float32(math.Inf(1))}}
	r.Measure(m, m.AppendSpans(nil))
	assert.Zero(t, r.Known)
	assert.Zero(t, r.Median)
}

func TestCellAt(t *testing.T) {
	m := &DenseMap{Width: 4, Height: 2, X: -.375, Y: -.375, StepX: .25, StepY: .25, Classes: []uint8{0, 1, 2, 3, 4, 5, 6, 7}} // of 16x8 pixels
	for y := range 8 {
		for x := range 16 {
			column, row := m.CellAt(x, y)
			require.Equal(t, x/4, column)
			require.Equal(t, y/4, row)
		}
	}
	x, y := m.Centre(1, 1)
	assert.Equal(t, float32(6), x)
	assert.Equal(t, float32(6), y)
	moved := m.Clone()
	moved.Translate(image.Pt(8, 0)) // it was taken of a part of the image that begins there
	column, _ := moved.CellAt(8, 0)
	assert.Zero(t, column)
	assert.True(t, moved.Contains(8, 0))
	assert.True(t, moved.Contains(23, 7))
	assert.False(t, moved.Contains(2, 0))
	assert.False(t, moved.Contains(30, 0))
	assert.False(t, moved.Contains(8, 13))
	moved.Classes[0] = 9
	assert.Zero(t, m.Classes[0], "a clone is its own")
	assert.Nil(t, (*DenseMap)(nil).Clone())
}
