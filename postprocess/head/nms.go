package head

import (
	"cmp"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// sortKeys returns a key for every candidate that sorts best score first: the complement of the score's bits above the candidate's index.
// The bits of positive floats sort as the floats do.
func sortKeys(keys []uint64, list []scan.Candidate) []uint64 {
	keys = keys[:0]
	for i := range list {
		keys = append(keys, uint64(^math.Float32bits(list[i].Score))<<32|uint64(uint32(i)))
	}
	return keys
}

func byIndex(a, b uint64) int { return cmp.Compare(uint32(a), uint32(b)) }

// sortedRun is how many candidates are sorted at first: suppression usually reaches its limit before it has seen all.
const sortedRun = 512

// sortFront sorts the best count keys, and those with the same score as the last of them, to the front and returns their number.
func sortFront(keys []uint64, list []scan.Candidate, count int) int {
	if count >= len(keys) {
		sortByScore(keys, list)
		return len(keys)
	}
	selectSmallest(keys, count)
	last := uint64(0)
	for _, key := range keys[:count] {
		last = max(last, key)
	}
	for i := count; i < len(keys); i++ {
		if keys[i]>>32 == last>>32 {
			keys[i], keys[count] = keys[count], keys[i]
			count++
		}
	}
	sortByScore(keys[:count], list)
	return count
}

// sortByScore sorts by descending score. Boxes with equal scores are ordered by class and position, not by index: a list filtered on a
// device has no particular order and must yield the same detections.
func sortByScore(keys []uint64, list []scan.Candidate) {
	slices.Sort(keys)
	for start := 0; start < len(keys); {
		end := start + 1
		for end < len(keys) && keys[end]>>32 == keys[start]>>32 {
			end++
		}
		if end-start > 1 {
			slices.SortFunc(keys[start:end], func(a, b uint64) int { return comparePlace(&list[uint32(a)], &list[uint32(b)]) })
		}
		start = end
	}
}

func comparePlace(a, b *scan.Candidate) int {
	switch {
	case a.Class != b.Class:
		return cmp.Compare(a.Class, b.Class)
	case a.X1 != b.X1:
		return cmp.Compare(a.X1, b.X1)
	case a.Y1 != b.Y1:
		return cmp.Compare(a.Y1, b.Y1)
	case a.X2 != b.X2:
		return cmp.Compare(a.X2, b.X2)
	}
	return cmp.Compare(a.Y2, b.Y2)
}

// selectSmallest moves the count smallest keys to the front, in no order: quickselect with the median of three, O(n).
func selectSmallest(keys []uint64, count int) {
	for len(keys) > 1 && count > 0 && count < len(keys) {
		a, b, c := keys[0], keys[len(keys)/2], keys[len(keys)-1]
		pivot := max(min(a, b), min(max(a, b), c))
		low, high := 0, len(keys)-1
		for low <= high {
			for keys[low] < pivot {
				low++
			}
			for keys[high] > pivot {
				high--
			}
			if low <= high {
				keys[low], keys[high] = keys[high], keys[low]
				low++
				high--
			}
		}
		switch {
		case count <= high+1:
			keys = keys[:high+1]
		case count >= low:
			keys, count = keys[low:], count-low
		default:
			return
		}
	}
}

// noSuppression keeps all candidates: heads of networks that need no suppression.
type noSuppression struct{}

func (noSuppression) begin(int) {}

func (noSuppression) keep(*scan.Candidate) bool { return true }

// greedyNMS is greedy non-maximum suppression. The kept boxes are chained by class, so that a box is compared only with those that could
// suppress it.
type greedyNMS struct {
	limit    float32 // IoU
	agnostic bool
	newest   []int32 // by class: the newest kept box plus 1, 0 for none
	chain    []keptBox
}

type keptBox struct {
	postprocess.Box
	area  float32
	older int32 // number of the next box of the chain plus 1
	class int32
}

func (s *greedyNMS) begin(classes int) {
	for _, kept := range s.chain {
		s.newest[kept.class] = 0
	}
	s.chain = s.chain[:0]
	if len(s.newest) < classes {
		s.newest = make([]int32, classes)
	}
}

// keep reports whether no kept box of the candidate's class overlaps it by more than the limit.
func (s *greedyNMS) keep(c *scan.Candidate) bool {
	class := c.Class
	if s.agnostic {
		class = 0
	}
	area := c.Area()
	for i := s.newest[class]; i != 0; {
		kept := &s.chain[i-1]
		width := min(c.X2, kept.X2) - max(c.X1, kept.X1)
		height := min(c.Y2, kept.Y2) - max(c.Y1, kept.Y1)
		if width > 0 && height > 0 {
			shared := width * height
			if shared > s.limit*(area+kept.area-shared) {
				return false
			}
		}
		i = kept.older
	}
	s.chain = append(s.chain, keptBox{c.Box, area, s.newest[class], class})
	s.newest[class] = int32(len(s.chain))
	return true
}
