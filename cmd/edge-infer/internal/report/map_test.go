package report

import (
	"encoding/json"
	"image"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// halves is a map of an image of 320x240: class 0 left, class 2 right.
func halves() *postprocess.DenseMap {
	m := &postprocess.DenseMap{Width: 32, Height: 24, StepX: .1, StepY: .1, X: -.45, Y: -.45, Classes: make([]uint8, 32*24)}
	for i := range m.Classes {
		m.Classes[i] = uint8(i % 32 / 16 * 2)
	}
	return m
}

func right() zone.MapStats {
	half := zone.Zone{Name: "right", Points: []zone.Point{{X: .5}, {X: 1}, {X: 1, Y: 1}, {X: .5, Y: 1}}}
	return zone.MapStats{Config: zone.Config{Zones: []zone.Zone{half}}}
}

func TestMapsOfClasses(t *testing.T) {
	m, survey, labels := halves(), right(), []string{"floor", "wall", "door"}
	maps := Maps{Side: 4}
	for range 2 {
		survey.Measure(m, 320, 240)
		text, err := json.Marshal(maps.Of(m, &survey, labels, 320, 240))
		require.NoError(t, err)
		assert.JSONEq(t, `{"classes":[{"label":"floor","class":0,"share":0.5},{"label":"door","class":2,"share":0.5}],
			"zones":{"right":{"classes":[{"label":"door","class":2,"share":1}]}},
			"grid":{"size":[3,4],"classes":[{"label":"floor","class":0,"counts":"066"},{"label":"door","class":2,"counts":"66"}]}}`, string(text))
	}
	said := maps.Of(m, &survey, labels, 320, 240)
	assert.Equal(t, "floor 0.500, door 0.500", string(AppendMap(nil, said)))
	m.Translate(image.Pt(0, 120)) // the network was shown the lower part of a larger image
	survey.Measure(m, 320, 360)
	grid := maps.Of(m, &survey, labels, 320, 360).Grid
	assert.Equal(t, []int{4, 4}, []int{grid.Width, grid.Height})
	assert.Equal(t, "13107|9310", string(grid.Classes[0].Counts)+"|"+string(grid.Classes[1].Counts))
	maps.Side = 0
	assert.Zero(t, maps.Of(m, &survey, labels, 320, 240).Grid)
}

func TestMapsOfDepths(t *testing.T) {
	m, survey := halves(), right()
	m.Classes = nil
	for i := range 32 * 24 {
		m.Depths = append(m.Depths, float32(1+i%32))
	}
	m.Depths[0] = float32(math.NaN())
	survey.Measure(m, 320, 240)
	maps := Maps{Side: 2, Unit: Metres}
	text, err := json.Marshal(maps.Of(m, &survey, nil, 320, 240))
	require.NoError(t, err)
	assert.JSONEq(t, `{"unit":"m","min":1,"median":17,"max":32,"zones":{"right":{"min":17,"median":24,"max":32}},
		"grid":{"size":[2,2],"low":1,"high":32,"levels":"Q8ZDxg=="}}`, string(text))
	assert.Equal(t, "1 to 32, median 17 m", string(AppendMap(nil, maps.Of(m, &survey, nil, 320, 240))))
	m.Depths = m.Depths[:1:1]
	m.Width, m.Height = 1, 1
	survey.Measure(m, 320, 240)
	assert.Equal(t, "no depth", string(AppendMap(nil, maps.Of(m, &survey, nil, 320, 240))))
}

func TestLevels(t *testing.T) {
	assert.Equal(t, uint8(0), Level(float32(math.Inf(1)), 0, 1))
	assert.Equal(t, uint8(1), Level(3, 3, 3))
	assert.Equal(t, uint8(1), Level(-1, 0, 1))
	assert.Equal(t, uint8(128), Level(.5, 0, 1))
	assert.Equal(t, uint8(255), Level(2, 0, 1))
}

// However busy a map is, the grid of the largest side stays below a bound.
func TestGridsAreBounded(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	m := halves()
	m.Width, m.Height, m.StepX, m.StepY = 256, 192, .8, .8
	m.Classes = make([]uint8, 256*192)
	for i := range m.Classes {
		m.Classes[i] = uint8(random.IntN(150))
	}
	var survey zone.MapStats
	survey.Measure(m, 320, 240)
	maps := Maps{Side: 256}
	text := maps.Of(m, &survey, nil, 320, 240).AppendField(nil)
	assert.Less(t, len(text), 4*256*192)
	columns, rows := Grid(256, 320, 240)
	assert.Equal(t, []int{256, 192}, []int{columns, rows})
	columns, rows = Grid(8, 100000, 1)
	assert.Equal(t, []int{8, 1}, []int{columns, rows})
}
