package pipeline

import (
	"slices"
	"time"
)

// buckets is how many upper bounds a Histogram has.
const buckets = 16

// bounds are the upper bounds of the buckets, fixed so that counts of all cameras and runs can be added.
var bounds = [buckets]time.Duration{
	time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, 5 * time.Millisecond, 7500 * time.Microsecond, 10 * time.Millisecond,
	15 * time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond, 50 * time.Millisecond, 75 * time.Millisecond, 100 * time.Millisecond,
	200 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second,
}

// Histogram counts latencies in few buckets since a camera was there, for systems that add up such counts over time and machines.
type Histogram struct {
	Counts [buckets + 1]uint64 // not cumulative; the last one is over every bound
	Sum    time.Duration
}

// Bounds are the upper bounds of the buckets, each included.
func (h *Histogram) Bounds() []time.Duration { return bounds[:] }

func (h *Histogram) add(latency time.Duration) {
	bucket, _ := slices.BinarySearch(bounds[:], latency)
	h.Counts[bucket]++
	h.Sum += latency
}
