package assignment

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// best tries every pairing.
func best(weights []float64, rows, columns, row int, taken []bool) float64 {
	if row == rows {
		return 0
	}
	most := best(weights, rows, columns, row+1, taken)
	for c := range columns {
		if w := weights[row*columns+c]; w > 0 && !taken[c] {
			taken[c] = true
			most = max(most, w+best(weights, rows, columns, row+1, taken))
			taken[c] = false
		}
	}
	return most
}

func TestMaximizeEqualsExhaustiveSearch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var solver Solver
	for round := range 3000 {
		rows, columns := random.IntN(7), random.IntN(7)
		weights := make([]float64, rows*columns)
		density := random.Float64()
		for i := range weights {
			if random.Float64() < density {
				weights[i] = random.Float64()*1.2 - 0.2
			}
		}
		got := solver.Maximize(weights, rows, columns)
		require.Len(t, got, rows)
		sum, taken := 0.0, make([]bool, columns)
		for r, c := range got {
			if c < 0 {
				continue
			}
			require.False(t, taken[c], "round %d", round)
			require.Positive(t, weights[r*columns+int(c)])
			taken[c] = true
			sum += weights[r*columns+int(c)]
		}
		require.InDelta(t, best(weights, rows, columns, 0, make([]bool, columns)), sum, 1e-9, "round %d", round)
	}
}

func TestMaximizeAllocatesNothing(t *testing.T) {
	var solver Solver
	weights := dense(40)
	assert.Zero(t, testing.AllocsPerRun(10, func() { solver.Maximize(weights, 40, 40) }))
}

func dense(n int) []float64 {
	random := rand.New(rand.NewPCG(3, 4))
	weights := make([]float64, n*n)
	for i := range weights {
		weights[i] = random.Float64()
	}
	return weights
}

func BenchmarkMaximize(b *testing.B) {
	for _, n := range []int{10, 50, 100} {
		b.Run(fmt.Sprintf("dense=%d", n), func(b *testing.B) {
			var solver Solver
			weights := dense(n)
			for b.Loop() {
				solver.Maximize(weights, n, n)
			}
		})
	}
}
