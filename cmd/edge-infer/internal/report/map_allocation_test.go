//go:build !race

package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The race detector allocates on its own.
func TestMapsNoAllocations(t *testing.T) {
	labels := []string{"floor", "wall", "door"}
	for _, depths := range [][]float32{nil, make([]float32, 32*24)} {
		m, survey := halves(), right()
		if depths != nil {
			m.Classes, m.Depths = nil, depths
		}
		maps := Maps{Side: 16}
		frame := func() {
			survey.Measure(m, 320, 240)
			maps.Of(m, &survey, labels, 320, 240)
		}
		frame()
		require.Zero(t, testing.AllocsPerRun(20, frame))
	}
}
