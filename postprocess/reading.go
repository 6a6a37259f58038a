package postprocess

import (
	"math"
	"slices"
)

// Span is a run of cells of a map's rows laid one after the other: from From to before To.
type Span struct{ From, To int }

// PixelStats is what a map says of a part of an image. The zero value is ready; its memory is used again, so that one that is taken of maps
// of one size allocates nothing from the second on.
type PixelStats struct {
	// Shares are what the classes take of the part's area, by class number. What has no class counts as area too. 0 for depths.
	Shares [NoClass]float32
	// Known is how many cells of the part have a depth. Low, Median and High are of these, 0 where there are none; the median of an even
	// number is the lower of the two.
	Known             int
	Low, Median, High float32

	counts [NoClass + 1]uint32
	keys   []uint32
}

// Measure reads a part of a map.
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

// depths finds the median by its rank: sorting a map takes a hundred times as long.
func (r *PixelStats) depths(m *DenseMap, part []Span) {
	r.Known, r.Low, r.Median, r.High = 0, 0, 0, 0
	r.keys = r.keys[:0]
	for _, s := range part {
		for _, depth := range m.Depths[s.From:s.To] {
			if depth-depth == 0 {
				r.keys = append(r.keys, sortKey(depth))
			}
		}
	}
	if r.Known = len(r.keys); r.Known == 0 {
		return
	}
	r.Low, r.High = fromSortKey(slices.Min(r.keys)), fromSortKey(slices.Max(r.keys))
	keys, rank, found := r.keys, uint32(r.Known-1)/2, uint32(0)
	for shift := 24; shift >= 0; shift -= 8 { // the key's digits one after the other, among keys that begin with those before
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

// sortKey is a number whose order among such is that of the depths; disordered takes it back.
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

// AppendSpans is all of a map's cells, appended to dst.
func (m *DenseMap) AppendSpans(dst []Span) []Span { return append(dst, Span{0, m.Width * m.Height}) }
