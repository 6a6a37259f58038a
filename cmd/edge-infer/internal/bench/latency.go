package bench

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts latencies from 0.1 microseconds to a minute with three significant digits. It must be used by one goroutine at a time
// and allocates only when created.
type Histogram struct{ h *hdrhistogram.Histogram }

const (
	unit    = 100 * time.Nanosecond
	longest = time.Minute
)

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram { return &Histogram{hdrhistogram.New(1, int64(longest/unit), 3)} }

// Add adds a latency; values over a minute count as a minute.
func (h *Histogram) Add(d time.Duration) {
	_ = h.h.RecordValue(int64(min(max(d, unit), longest) / unit)) // never fails within the limits
}

// Count returns the number of latencies.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Median returns the median, 0 for none.
func (h *Histogram) Median() time.Duration { return time.Duration(h.h.ValueAtQuantile(50)) * unit }

// Latency returns the distribution.
func (h *Histogram) Latency() Latency {
	scale := float64(unit) / float64(time.Millisecond)
	at := func(percentile float64) float64 { return float64(h.h.ValueAtQuantile(percentile)) * scale }
	l := Latency{
		Mean: h.h.Mean() * scale, P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9),
		Max: float64(h.h.Max()) * scale, Curve: []Point{},
	}
	// Eight points per nine of the percentile, as far as the number of latencies allows.
	for step := 0; ; step++ {
		slower := math.Pow(10, -float64(step)/8)
		if slower*float64(h.Count()) < 1 {
			return l
		}
		percentile := math.Round(1e7*(1-slower)) / 1e5
		l.Curve = append(l.Curve, Point{percentile, at(percentile)})
	}
}
