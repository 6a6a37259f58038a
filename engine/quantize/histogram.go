package quantize

import (
	"fmt"
	"math"
)

// bins is the number of bins. At least half of them are in use.
const bins = 4096

// Histogram counts the magnitudes of a stream of values in bounded memory. The bin width is a power of two and doubles when a larger value
// arrives, so the result does not depend on the order of the values.
type Histogram struct {
	min, max float32
	count    uint64
	exponent int // the bin width is 2^exponent
	counts   [bins]uint64
}

// minExponent is the smallest bin width; all smaller values are in the first bin.
const minExponent = -60

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{min: float32(math.Inf(1)), max: float32(math.Inf(-1)), exponent: minExponent}
}

// Add adds values. If one is not finite, it returns an error and adds none.
func (h *Histogram) Add(values []float32) error {
	low, high := h.min, h.max
	for i, v := range values {
		if v-v != 0 {
			return fmt.Errorf("value %d is %v", i, v)
		}
		low, high = min(low, v), max(high, v)
	}
	h.min, h.max = low, high
	h.grow(max(high, -low))
	h.count += uint64(len(values))
	// A product with a power of two is exact.
	scale := float32(math.Ldexp(1, -h.exponent))
	for _, v := range values {
		if v < 0 {
			v = -v
		}
		h.counts[int(v*scale)&(bins-1)]++
	}
	return nil
}

// grow doubles the bin width until magnitude fits.
func (h *Histogram) grow(magnitude float32) {
	for float64(magnitude) >= math.Ldexp(bins, h.exponent) {
		for i := range bins / 2 {
			h.counts[i] = h.counts[2*i] + h.counts[2*i+1]
		}
		clear(h.counts[bins/2:])
		h.exponent++
	}
}

// Range returns the range of the values with the limit of every method; percentile is in percent.
func (h *Histogram) Range(percentile float64) Range {
	if h.count == 0 {
		return Range{}
	}
	seen := max(h.max, -h.min)
	limits := map[Method]float32{
		MinMax: seen, Percentile: h.edge(h.binsUnder(percentile)), Entropy: h.entropy(percentile), MSE: h.meanSquare(),
	}
	for method, limit := range limits {
		limits[method] = min(limit, seen)
	}
	return Range{Min: h.min, Max: h.max, Limits: limits}
}

// edge returns the upper edge of bin i-1.
func (h *Histogram) edge(i int) float32 { return float32(math.Ldexp(float64(i), h.exponent)) }

// used returns the number of bins up to the last non-empty one.
func (h *Histogram) used() int {
	n := bins
	for n > 0 && h.counts[n-1] == 0 {
		n--
	}
	return n
}

// binsUnder returns the number of bins that contain this percentage of the values.
func (h *Histogram) binsUnder(percent float64) int {
	under := uint64(math.Ceil(float64(h.count) * percent / 100))
	seen := uint64(0)
	for i, c := range h.counts {
		seen += c
		if seen >= under {
			return i + 1
		}
	}
	return bins
}

const (
	levels = 128 // magnitudes of INT8
	stride = 8   // bins between two candidates
)

// entropy returns the limit with the smallest Kullback-Leibler divergence (Migacz, "8-bit Inference with TensorRT", GTC 2017). The first
// bin, nearly all exact zeros after a ReLU, gets the count of its neighbour, as in NVIDIA's pytorch-quantization. The limit is at least the
// percentile keep: in tensors with mostly flat background the divergence alone would clip the few large values of the detections.
func (h *Histogram) entropy(keep float64) float32 {
	used := h.used()
	if used <= levels {
		return h.edge(used)
	}
	counts := make([]float64, used)
	for i := range counts {
		counts[i] = float64(h.counts[i])
	}
	counts[0] = counts[1]
	total := 0.0
	for _, c := range counts {
		total += c
	}
	if total == 0 {
		return h.edge(used)
	}
	inside := 0.0
	start := max(levels, h.binsUnder(keep))
	for _, c := range counts[:start] {
		inside += c
	}
	best, limit := math.Inf(1), used
	for n := start; ; {
		if lost := divergence(counts[:n], total-inside); lost < best {
			best, limit = lost, n
		}
		if n == used {
			return h.edge(limit)
		}
		next := min(n+stride, used)
		for _, c := range counts[n:next] {
			inside += c
		}
		n = next
	}
}

// divergence compares a clipped distribution, with the outliers in its last bin, with its quantization to levels steps spread evenly over
// the non-empty bins.
func divergence(counts []float64, outliers float64) float64 {
	n, last := len(counts), len(counts)-1
	total, kept := outliers, 0.0
	for _, c := range counts {
		total += c
		kept += c
	}
	if kept == 0 {
		return math.Inf(1)
	}
	sum := 0.0
	for level := range levels {
		from, to := level*n/levels, (level+1)*n/levels
		mass, filled := 0.0, 0.0
		for i := from; i < to; i++ {
			mass += counts[i]
			if counts[i] > 0 || i == last && outliers > 0 {
				filled++
			}
		}
		if filled == 0 {
			continue
		}
		q := mass / filled / kept
		for i := from; i < to; i++ {
			p := counts[i]
			if i == last {
				p += outliers
			}
			if p == 0 {
				continue
			}
			if q == 0 {
				// All values of this step are outliers that the quantized distribution cannot represent.
				return math.Inf(1)
			}
			p /= total
			sum += p * math.Log(p/q)
		}
	}
	return sum
}

// meanSquare returns the limit with the smallest mean squared error of rounding and saturation.
func (h *Histogram) meanSquare() float32 {
	used := h.used()
	best, limit := math.Inf(1), used
	for n := min(levels, used); n > 0; {
		step := float64(n) / 127
		sum := 0.0
		for i, c := range h.counts[:used] {
			if c == 0 {
				continue
			}
			middle := float64(i) + 0.5
			lost := middle - min(math.RoundToEven(middle/step), 127)*step
			sum += float64(c) * lost * lost
		}
		if sum < best {
			best, limit = sum, n
		}
		if n == used {
			break
		}
		n = min(n+stride, used)
	}
	return h.edge(limit)
}
