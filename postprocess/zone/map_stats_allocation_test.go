//go:build !race

package zone

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

// The race detector allocates on its own.
func TestMapStatsNoAllocations(t *testing.T) {
	for _, m := range []*postprocess.DenseMap{
		{Width: 80, Height: 45, StepX: .125, StepY: .125, Classes: make([]uint8, 3600)},
		{Width: 80, Height: 45, StepX: .125, StepY: .125, Depths: make([]float32, 3600)},
	} {
		s := MapStats{Config: Config{Zones: []Zone{{Name: "left", Points: []Point{{0, 0}, {.5, 0}, {.5, 1}, {0, 1}}}}}}
		take := func() { s.Measure(m, 640, 360) }
		take()
		require.Zero(t, testing.AllocsPerRun(20, take))
	}
}
