package inflight_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/inflight"
)

func TestBudget(t *testing.T) {
	b := &inflight.Budget{Max: 100, Setting: "x.max"}
	first := inflight.Lease{Budget: b}
	second := inflight.Lease{Budget: b}
	require.NoError(t, first.Grow(60))
	require.NoError(t, first.Grow(50), "it is larger already")
	require.NoError(t, second.Add(40))
	require.EqualError(t, second.Add(1), "too much memory is in use: 100 bytes of 100 (x.max raises the limit)")
	require.Equal(t, inflight.Stats{Used: 100, Max: 100, Refused: 1}, b.Stats())
	first.End()
	require.NoError(t, second.Grow(100))
	second.End()
	require.Equal(t, inflight.Stats{Max: 100, Refused: 1}, b.Stats())
}

func TestABudgetWithoutALimitCounts(t *testing.T) {
	var b inflight.Budget
	require.NoError(t, b.Reserve(1<<60))
	require.Equal(t, int64(1)<<60, b.Stats().Used)
}

func TestABudgetIsNeverExceeded(t *testing.T) {
	b := &inflight.Budget{Max: 10}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				if b.Reserve(7) == nil {
					b.Release(7)
				}
			}
		})
	}
	all.Wait()
	require.Zero(t, b.Stats().Used)
}
