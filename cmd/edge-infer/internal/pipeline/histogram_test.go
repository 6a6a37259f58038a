package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestHistogramBounds(t *testing.T) {
	m := newMeter()
	for _, latency := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, 9 * time.Millisecond, time.Minute} {
		m.frame(latency, 0, false, false)
	}
	h := m.total("a").Latency
	require.Len(t, h.Counts, len(h.Bounds())+1)
	require.IsIncreasing(t, h.Bounds())
	require.Equal(t, []uint64{2, 1, 0, 0, 0, 1}, h.Counts[:6])
	require.Equal(t, uint64(1), h.Counts[len(h.Bounds())])
	require.Equal(t, time.Minute+11*time.Millisecond+1, h.Sum)
	require.Zero(t, testing.AllocsPerRun(10, func() { m.frame(time.Millisecond, 1, false, false) }))
}
