package result

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram takes latencies from a microsecond's tenth to a minute with three significant digits. One goroutine at a time; it does not
// allocate after its making.
type Histogram struct{ h *hdrhistogram.Histogram }

const (
	unit    = 100 * time.Nanosecond
	longest = time.Minute
)

// NewHistogram makes an empty one.
func NewHistogram() *Histogram { return &Histogram{hdrhistogram.New(1, int64(longest/unit), 3)} }

// Add takes one latency; longer ones than a minute count as a minute.
func (h *Histogram) Add(d time.Duration) {
	_ = h.h.RecordValue(int64(min(max(d, unit), longest) / unit)) // within the limits there is no error
}

// Count is how many there are.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Median is half-way through them, 0 for none.
func (h *Histogram) Median() time.Duration { return time.Duration(h.h.ValueAtQuantile(50)) * unit }

// Latency is the distribution.
func (h *Histogram) Latency() Latency {
	scale := float64(unit) / float64(time.Millisecond)
	at := func(percentile float64) float64 { return float64(h.h.ValueAtQuantile(percentile)) * scale }
	l := Latency{
		Mean: h.h.Mean() * scale, P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9),
		Max: float64(h.h.Max()) * scale, Curve: []Point{},
	}
	// Eight points for each nine, up to as many as there are latencies to tell.
	for step := 0; ; step++ {
		slower := math.Pow(10, -float64(step)/8)
		if slower*float64(h.Count()) < 1 {
			return l
		}
		percentile := math.Round(1e7*(1-slower)) / 1e5
		l.Curve = append(l.Curve, Point{percentile, at(percentile)})
	}
}
