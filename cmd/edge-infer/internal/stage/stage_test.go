package stage_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
)

func TestQuantilesAreThoseOfWhatWasRecorded(t *testing.T) {
	c := stage.New()
	for i := 1; i <= 1000; i++ {
		c.Record(stage.Decode, time.Duration(i)*time.Microsecond)
	}
	all := c.Totals()
	require.Len(t, all, 1, "stages without a time are left out")
	s := all[0]
	assert.Equal(t, stage.Decode, s.Stage)
	assert.EqualValues(t, 1000, s.Count)
	assert.Equal(t, 500500*time.Microsecond, s.Sum)
	for _, q := range []struct{ want, got time.Duration }{{500, s.P50}, {990, s.P99}, {999, s.P999}, {1000, s.Max}} {
		assert.InEpsilon(t, float64(q.want*time.Microsecond), float64(q.got), 0.01)
	}
}

func TestRecentBeginsAnewAndTotalsDoNot(t *testing.T) {
	c := stage.New()
	c.Record(stage.Queue, time.Millisecond)
	require.Len(t, c.Recent(), 1)
	assert.Empty(t, c.Recent())
	c.Record(stage.Queue, time.Second)
	assert.EqualValues(t, 1, c.Recent()[0].Count)
	assert.EqualValues(t, 2, c.Totals()[0].Count)
}

func TestTimesOutsideTheRangeAreCounted(t *testing.T) {
	c := stage.New()
	c.Record(stage.Track, -time.Second)
	c.Record(stage.Track, time.Hour)
	s := c.Totals()[0]
	assert.EqualValues(t, 2, s.Count)
	assert.InEpsilon(t, float64(time.Minute), float64(s.Max), 0.01)
	assert.Equal(t, time.Minute, s.Sum)
}

func TestNoClocks(t *testing.T) {
	var c *stage.Times
	c.Record(stage.Network, 1)
	assert.Empty(t, c.Recent())
	assert.Empty(t, c.Totals())
}

func TestEveryStageHasItsOwnName(t *testing.T) {
	seen := map[string]bool{}
	for s := range stage.Stage(stage.Count) {
		assert.NotEmpty(t, s.String())
		seen[s.String()] = true
	}
	assert.Len(t, seen, stage.Count)
}

func TestRecordFromManyGoroutines(t *testing.T) {
	c := stage.New()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 1000 {
				c.Record(stage.Stage(i%stage.Count), time.Duration(i))
				if i%100 == 0 {
					c.Recent()
				}
			}
		})
	}
	all.Wait()
	var sum uint64
	for _, s := range c.Totals() {
		sum += s.Count
	}
	assert.EqualValues(t, 4000, sum)
}

func TestNoAllocations(t *testing.T) {
	c := stage.New()
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.Record(stage.HandOff, 3*time.Microsecond) }))
}

func BenchmarkRecord(b *testing.B) {
	c := stage.New()
	for i := 0; b.Loop(); i++ {
		c.Record(stage.Network, time.Duration(i%1_000_000))
	}
}
