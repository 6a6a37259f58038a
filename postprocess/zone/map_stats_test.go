package zone

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// A zone has the cells whose centres it contains.
func TestMapStatsOfZones(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	const width, height, columns, rows = 640, 360, 80, 45
	m := &postprocess.DenseMap{
		Width:   columns,
		Height:  rows,
		StepX:   .125,
		StepY:   .125,
		X:       -.4375,
		Y:       -.4375,
		Classes: make([]uint8, columns*rows),
	}
	for i := range m.Classes {
		m.Classes[i] = uint8(random.IntN(4))
	}
	for range 50 {
		outline := star(random, 320, 180, 170)
		s := MapStats{Config: Config{Width: width, Height: height, Zones: []Zone{{Name: "star", Points: outline}, {Points: []Point{
			{0, 0}, {width, 0}, {width, height}, {0, height},
		}}}}}
		require.Nil(t, s.Image())
		require.Nil(t, s.Zone(0))
		s.Measure(m, width, height)
		var counts [4]int
		area := 0
		for row := range rows {
			for column := range columns {
				x, y := m.Centre(column, row)
				if polygon(outline).contains(Point{float64(x), float64(y)}) {
					counts[m.Classes[row*columns+column]]++
					area++
				}
			}
		}
		require.Positive(t, area)
		for class, count := range counts {
			require.InDelta(t, float64(count)/float64(area), s.Zone(0).Shares[class], 1e-6)
		}
		require.Equal(t, s.Image().Shares, s.Zone(1).Shares, "a zone that is all of the image")
	}
}

// Zones in shares of the image follow its size and that of the map.
func TestMapStatsFollowImageSize(t *testing.T) {
	s := MapStats{Config: Config{Zones: []Zone{{Name: "left", Points: []Point{{0, 0}, {.5, 0}, {.5, 1}, {0, 1}}}}}}
	take := func(width, height, columns int, step float32) {
		m := &postprocess.DenseMap{Width: columns, Height: 2, StepX: step, StepY: step, X: step/2 - .5, Y: step/2 - .5}
		m.Depths = make([]float32, 2*columns)
		for i := range m.Depths {
			m.Depths[i] = float32(i % columns)
		}
		s.Measure(m, width, height)
		assert.Equal(t, columns, s.Zone(0).Known)
		assert.Equal(t, float32(columns/2-1), s.Zone(0).High)
		assert.Equal(t, float32(columns-1), s.Image().High)
	}
	take(40, 20, 4, .1)
	take(80, 40, 4, .05)
	take(80, 20, 8, .1)
}
