package mqtt

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCoalesced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, value, seen atomic.Int64
		c := coalesced{pause: time.Second, run: func() {
			runs.Add(1)
			seen.Store(value.Load())
		}}
		for range 10_000 { // in ten seconds
			value.Add(1)
			c.Do()
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		require.InDelta(t, 10, runs.Load(), 1)
		value.Add(1)
		c.Do()
		c.Flush()
		require.Equal(t, value.Load(), seen.Load(), "the newest value is never left out")
		before := runs.Load()
		c.Flush()
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, before, runs.Load())
	})
}
